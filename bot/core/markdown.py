"""Which lines of a comment are commands: plain paragraph text only, as GitHub would show it.

A command in a quote, in code, in a link's text, a heading, an HTML comment or a folded `<details>` is being shown,
not given. Knows Markdown, and of commands only the prefix.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

PREFIX = "/benchmark"
# GitHub keeps at most 65,536 characters of a comment; what is longer did not come from there
MAX_CHARACTERS = 65_536
_COMMAND = "benchbot_command"
# text in these elements is quoted, shown or folded away, even when blank lines make Markdown of what is inside
_BLOCKS_ASIDE = frozenset({"details", "blockquote", "pre", "table"})
_INLINE_ASIDE = frozenset({"a", "code", "kbd", "samp", "del", "s"})
# blanks that a phone or a copied page puts between words, and characters that nobody can see
_SEEN = {ord(blank): " " for blank in "\u00a0\u1680\u2007\u202f\u205f\u3000"} | {
    ord(unseen): None for unseen in "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e"
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a comment: its 1-based number, and its text without the blanks around it."""

    number: int
    text: str


def command_lines(body: str, prefix: str = PREFIX) -> tuple[Line, ...]:
    """The lines of a Markdown text that begin with the prefix, in their order. `body` may have any line ends."""
    body = body[:MAX_CHARACTERS].replace("\r\n", "\n").replace("\r", "\n").translate(_SEEN)
    lines = body.split("\n")
    starts = re.compile(rf" {{0,3}}{re.escape(prefix)}(?=\s|$)", re.IGNORECASE)
    if not any(starts.match(line) for line in lines):
        return ()
    parser = _parser(re.compile(rf"{re.escape(prefix)}(?=\s|$)[^\n]*", re.IGNORECASE))
    found = _Walk().commands(parser.parse(body))
    return tuple(Line(number + 1, lines[number].strip()) for number in found if starts.match(lines[number]))


def new_lines(old_body: str, new_body: str, prefix: str = PREFIX) -> tuple[Line, ...]:
    """The commands of an edited comment that were not there before; a line that now stands twice counts once."""
    before = Counter(" ".join(line.text.split()) for line in command_lines(old_body, prefix))
    new = []
    for line in command_lines(new_body, prefix):
        text = " ".join(line.text.split())
        if before[text]:
            before[text] -= 1
        else:
            new.append(line)
    return tuple(new)


def _parser(command: re.Pattern[str]) -> MarkdownIt:
    """CommonMark with tables, and a token of its own for each line that begins with the command."""

    def rule(state: StateInline, silent: bool) -> bool:
        # not while a link's text is measured or read: there the words belong to the link
        if silent or state.linkLevel > 0:
            return False
        start = state.src.rfind("\n", 0, state.pos) + 1
        if state.src[start : state.pos].strip(" "):
            return False
        match = command.match(state.src, state.pos, state.posMax)
        if match is None:
            return False
        token = state.push(_COMMAND, "", 0)
        token.meta = {"line": state.src.count("\n", 0, state.pos)}
        state.pos = match.end()
        return True

    parser = MarkdownIt("commonmark").enable("table").disable(["emphasis", "entity", "autolink"])
    parser.inline.ruler.before("text", "benchbot_command", rule)
    return parser


class _Tags(HTMLParser):
    """Counts which elements that set text aside are open; HTML comments and attributes do not count."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS_ASIDE or tag in _INLINE_ASIDE:
            self.open[tag] += 1

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        # HTML knows no `<details/>`: a browser leaves it open
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self.open[tag]:
            self.open[tag] -= 1


class _Walk:
    """Goes through the tokens of a text and keeps what is open: containers of Markdown, elements of HTML."""

    def __init__(self) -> None:
        self.tags: list[_Tags] = [_Tags()]
        self.quotes = 0

    def commands(self, tokens: Sequence[Token]) -> list[int]:
        """0-based numbers of the lines that hold a command."""
        found: list[int] = []
        inside = ""
        for token in tokens:
            if token.type in ("blockquote_open", "list_item_open"):
                # an element that is left open inside a container ends with it
                self.tags.append(_Tags())
                self.quotes += token.type == "blockquote_open"
            elif token.type in ("blockquote_close", "list_item_close"):
                self.tags.pop()
                self.quotes -= token.type == "blockquote_close"
            elif token.type == "html_block":
                self.tags[-1].feed(token.content)
            elif token.type.endswith("_open"):
                inside = token.type
            elif token.type == "inline" and inside == "paragraph_open" and token.map:
                found += [token.map[0] + line for line in self._in_paragraph(token.children or ())]
        return found

    def _in_paragraph(self, children: Sequence[Token]) -> list[int]:
        found = []
        for token in children:
            if token.type == "html_inline":
                self.tags[-1].feed(token.content)
            elif token.type == _COMMAND and not self.quotes and not self._aside():
                found.append(int(token.meta["line"]))
        for tag in _INLINE_ASIDE:
            self.tags[-1].open[tag] = 0
        return found

    def _aside(self) -> bool:
        return any(sum(tags.open.values()) for tags in self.tags)
