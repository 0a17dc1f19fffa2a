"""Markdown of comments and check runs as GitHub shows it: rendered, then cut down to what GitHub lets stand."""

import re
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markupsafe import Markup

_TAGS = {
    *(
        "a",
        "abbr",
        "b",
        "bdo",
        "cite",
        "code",
        "del",
        "dfn",
        "em",
        "i",
        "ins",
        "kbd",
        "mark",
        "q",
        "s",
        "samp",
        "small",
    ),
    *("span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "ruby", "rp", "rt", "br", "wbr", "img"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "hr", "pre", "blockquote", "details", "summary"),
    *("ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption"),
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"),
}
_CELL = {"align", "colspan", "rowspan"}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "details": {"open"},
    "div": {"align"},
    "img": {"src", "alt", "title", "width", "height", "align"},
    "ol": {"start"},
    "p": {"align"},
    "td": _CELL,
    "th": _CELL,
}
_TASK = re.compile(r"\[([ xX])\]\s+")


@lru_cache(maxsize=1024)
def markdown(text: str) -> Markup:
    """HTML without scripts, styles, forms, names and classes; addresses are http, https or relative."""
    html = _parser().render(text)
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https"},
        link_rel="nofollow noopener",
        clean_content_tags={"script", "style", "textarea", "title", "iframe", "noscript", "xmp"},
    )
    return Markup(clean)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "breaks": True}).enable(["table", "strikethrough"])
    parser.core.ruler.push("columns", _columns)
    parser.core.ruler.push("tasks", _tasks)
    return parser


def _columns(state: StateCore) -> None:
    """How a column stands is written as a style, and styles are taken out: as an attribute it stays."""
    for token in state.tokens:
        style = token.attrs.pop("style", None) if token.type in ("th_open", "td_open") else None
        if style is not None:
            token.attrSet("align", str(style).removeprefix("text-align:"))


def _tasks(state: StateCore) -> None:
    """`- [x] done` with a box before it."""
    for opening, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (opening.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        for first in (inline.children or [])[:1]:
            found = _TASK.match(first.content) if first.type == "text" else None
            if found:
                first.content = f"{'☐' if found[1] == ' ' else '☑'} {first.content[found.end() :]}"
