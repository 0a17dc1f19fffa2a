"""Text of people and scripts, made harmless before it gets into Markdown.

Whatever a name, a log or a title holds: it mentions nobody, refers to nothing, links nowhere, is no markup, and keeps
a table in shape. GitHub looks for mentions and references in the finished page, so neither a backslash nor an entity
stops it, and an e-mail reply loses the marks of code: only a character in between holds. Everything else is an entity,
which Markdown never takes for structure.
"""

import re
import unicodedata
from urllib.parse import quote

# seen by nobody, and it parts what GitHub would join; the reader of commands drops it again
_BREAK = "\u200b"
ELLIPSIS = "…"
EMPTY = "(empty)"
_ZWJ = "\u200d"

_PARTS = re.compile(
    r"""
    (?P<at>@(?=[\w.-]))                                   # @user, @org/team, name@host, owner/repo@commit
  | (?P<number>\#(?=\d))                                  # #123, owner/repo#123
  | (?P<gh>\bGH-(?=\d))                                   # GH-123
  | (?P<scheme>:(?=//)|(?:mailto|xmpp):)                  # links that need no markup
  | (?P<www>www(?=\.))
  | (?P<emoji>:(?=[\w+-]+:))                              # :name: would become a picture
  | (?P<commit>(?<![0-9a-zA-Z])[0-9a-fA-F]{7,}(?![0-9a-zA-Z]))
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_ENTITIES = {ord(character): f"&#{ord(character)};" for character in "\\`*[]<>&|~$!{}\"'"}
_JOINS = re.compile(r"[@#][\w.-]|:[\w/]|-\d")
_LOOSE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
# marks that mean something at the beginning of a line only
_FIRST = re.compile(r"^(?:[#=/:]|[+-](?=[\s-]|$)|\d{1,9}(?=[.)](?:\s|$)))")


class Markdown(str):
    """Markdown of our own making, or made harmless: may stand in a comment as it is."""

    __slots__ = ()


def finalize(value: object) -> object:
    """What a value looks like in a Markdown template: our own Markdown as it is, any other text made harmless."""
    return inline(value) if isinstance(value, str) and not isinstance(value, Markdown) else value


def plain(text: str, *, lines: bool = False) -> str:
    """The text without control, bidirectional and invisible characters; on one line unless `lines`."""
    if text.isascii() and text.isprintable():
        return text if lines else re.sub(r" {2,}", " ", text).strip()
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    " if lines else " ")
    kept = []
    for position, character in enumerate(text):
        if character == "\n":
            kept.append("\n" if lines else " ")
        elif character == _ZWJ:
            # joins the parts of one picture, such as a family; anywhere else it only hides
            around = (text[position - 1] if position else "", text[position + 1 : position + 2])
            if all(part > "\u2190" and unicodedata.category(part) in ("So", "Mn", "Sk") for part in around):
                kept.append(character)
        elif unicodedata.category(character) == "Cs":
            kept.append("\ufffd")
        elif unicodedata.category(character) in ("Zl", "Zp", "Zs"):
            kept.append(" ")
        elif unicodedata.category(character) not in ("Cc", "Cf"):
            kept.append(character)
    found = "".join(kept)
    return found if lines else re.sub(r" {2,}", " ", found).strip()


def quiet(text: str) -> str:
    """The text with mentions, references, commits and bare links taken apart by a character nobody sees."""
    return _PARTS.sub(_part, text)


def inline(text: str, *, limit: int = 300) -> Markdown:
    """Text for a sentence or a table cell: one line of at most `limit` characters, no markup, no table break."""
    shown = _escaped(quiet(shorten(plain(text), characters=limit)))
    return Markdown(_FIRST.sub(lambda found: _first(found.group()), shown))


def code(text: str, *, limit: int = 100) -> Markdown:
    """Text as inline code, also inside a table: one line of at most `limit` characters."""
    shown = quiet(shorten(plain(text), characters=limit)) or EMPTY
    if "`" in shown or "|" in shown or shown.endswith("\\"):
        return Markdown(f"<code>{_escaped(shown)}</code>")
    return Markdown(f"`{shown}`")


def commit(sha: str) -> Markdown:
    """A commit of ours as inline code, short enough to read and whole enough to find."""
    return Markdown(f"`{sha[:7]}`") if is_commit(sha) else code(sha[:7])


def is_commit(text: str) -> bool:
    """Whether a text is nothing but hexadecimal digits."""
    return re.fullmatch(r"[0-9a-f]{7,40}", text) is not None


def typed(text: str) -> Markdown:
    """Lines to copy into a terminal, as a block of code: nothing is taken apart, or they would not run."""
    return _fenced(plain(text[:4000], lines=True).strip(), "sh")


def block(text: str, *, last_lines: int = 30, characters: int = 4000) -> Markdown:
    """The last lines of a log as a block of code that its own content cannot end."""
    seen = plain(text[-20 * characters :], lines=True).rstrip().split("\n")
    lines = [shorten(line, characters=300) for line in seen[-last_lines:]]
    while len(lines) > 1 and sum(len(line) + 1 for line in lines) > characters:
        lines.pop(0)
    return _fenced(quiet("\n".join(lines)), "text")


def sentence(text: str, *, limit: int = 600) -> Markdown:
    """A sentence of ours that holds names in backticks: the names become code, all else harmless text."""
    parts = shorten(plain(text), characters=limit).split("`")
    if len(parts) % 2 == 0:
        # a backtick without its partner is just a character
        parts[-2:] = ["`".join(parts[-2:])]
    shown = []
    for position, part in enumerate(parts):
        inside = position % 2 == 1
        # an e-mail loses the marks of code, and what stood on both sides of one is joined
        if position and _JOINS.search(parts[position - 1][-1:] + part[:1]):
            shown.append(_BREAK)
        shown.append(code(part, limit=limit) if inside else _escaped(quiet(part)))
    return Markdown(_FIRST.sub(lambda found: _first(found.group()), "".join(shown)))


def link(name: str, url: str) -> Markdown:
    """A link of ours under a harmless name; the name alone when the address is not one of the web."""
    address = safe_url(url)
    return Markdown(f"[{inline(name, limit=80)}]({address})") if address else inline(name, limit=80)


def safe_url(url: str) -> str:
    """The address with everything encoded that could end it; empty unless it is http, https or a path of the bot."""
    if not re.match(r"https?://[^/]|/(?!/)", url):
        return ""
    address = quote(url.encode("utf-8", "replace"), safe="/:?#!$&+,;=%~[]-._")
    return address if len(address) <= 1000 else ""


def fold_end(body: str, limit: int) -> str:
    """Markdown of at most `limit` characters: cut between two paragraphs, with a word that it was."""
    if len(body) <= limit:
        return body
    ending = "\n\n… the rest did not fit."
    kept = body[: limit - len(ending)]
    return kept[: max(kept.rfind("\n\n"), kept.rfind("\n"), 0)].rstrip() + ending


def shorten(text: str, *, characters: int | None = None, size: int | None = None) -> str:
    """The text, or its beginning and an ellipsis: at most `characters`, at most `size` bytes of UTF-8.

    What people see as one character (a family, a flag, a letter with its accents) is kept whole or left out.
    """
    fits = len(text) if characters is None else characters
    room = 4 * len(text) if size is None else size
    if len(text) <= fits and len(text.encode("utf-8", "replace")) <= room:
        return text
    fits, room = fits - len(ELLIPSIS), room - len(ELLIPSIS.encode())
    if fits < 0 or room < 0:
        return ""
    end, used = 0, 0
    for character in text[:fits]:
        used += len(character.encode("utf-8", "replace"))
        if used > room:
            break
        end += 1
    while end and _joined(text, end):
        end -= 1
    return text[:end].rstrip() + ELLIPSIS


def _joined(text: str, position: int) -> bool:
    """Whether the characters before and after a position inside the text are seen as one."""
    before, after = text[position - 1], text[position]
    if _ZWJ in (before, after) or unicodedata.category(after).startswith("M") or _is_tone(after):
        return True
    if _is_flag(before) and _is_flag(after):
        run = 0
        while run < position and _is_flag(text[position - 1 - run]):
            run += 1
        return run % 2 == 1
    # Korean letters that are written as one block
    return "\u1100" <= before <= "\u11ff" and "\u1160" <= after <= "\u11ff"


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f"


def _fenced(text: str, language: str) -> Markdown:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markdown(f"{fence}{language}\n{text}\n{fence}")


def _escaped(text: str) -> str:
    return _LOOSE_UNDERSCORE.sub("&#95;", text.translate(_ENTITIES))


def _part(found: re.Match[str]) -> str:
    text = found.group()
    if found.lastgroup == "commit":
        return _BREAK.join(text[at : at + 6] for at in range(0, len(text), 6))
    return text + _BREAK


def _first(mark: str) -> str:
    return "".join(f"&#{ord(character)};" for character in mark)
