"""Splits a line into words: straight and curly quotes, long dashes, and lists with blanks after their commas.

Phones turn `--` into a dash and quotes into curly ones; both are read as what was meant, or refused by name.
"""

from dataclasses import dataclass

_DASHES = "\u2013\u2014\u2015\u2012\u2212"
# what closes a quote that opens with each of these; a curly pair may be mixed up by a keyboard
_QUOTES = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201d\u201c",
    "\u201d": "\u201d\u201c",
    "\u201e": "\u201c\u201d",
    "\u00ab": "\u00bb",
    "\u2018": "\u2019\u2018",
    "\u2019": "\u2019\u2018",
}


# quotes that mean a quote even in the middle of a word, where an apostrophe means none
_STRAY = frozenset('"\u201c\u201d\u201e\u00ab\u00bb')


class QuoteError(ValueError):
    """A quote that never ends: its 1-based place in the line, and the text from there."""

    def __init__(self, column: int, rest: str) -> None:
        super().__init__(f"unbalanced quote at {column}")
        self.column = column
        self.rest = rest


@dataclass(frozen=True, slots=True)
class Word:
    """One word: `text` alone, or `text=value`. `was_quoted` when the text itself stood in quotes."""

    text: str
    value: str | None = None
    was_quoted: bool = False

    @property
    def whole(self) -> str:
        """The word as one text, for when it is the value of the word before it."""
        return self.text if self.value is None else f"{self.text}={self.value}"


def split_words(line: str) -> list[Word]:
    """The words of a line; raises QuoteError. A word that ends with a comma goes on with the next one."""
    words: list[Word] = []
    at = 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        word, at = _word(line, at)
        words.append(word)
    return _joined(words)


def quoted(text: str, special: str = "", *, always: bool = False) -> str:
    """The text as one word that `split_words` reads back, in quotes when it must be, or holds a special character.

    Raises ValueError for a text that no quotes can hold: such a text was never read from a line.
    """
    marks = {*_QUOTES, *_STRAY, *special}
    plain = bool(text) and not any(character.isspace() or character in marks for character in text)
    if plain and not always and not text.endswith(",") and text[0] not in _DASHES and not text.startswith("--"):
        return text
    for opening, closing in _QUOTES.items():
        if not any(character in closing for character in text):
            return f"{opening}{text}{closing[0]}"
    raise ValueError("no quotes can hold this text")


def _word(line: str, at: int) -> tuple[Word, int]:
    text, at, was_quoted = _piece(line, at, stop="=")
    if not was_quoted:
        bare = text.lstrip(_DASHES + "-")
        if text[:1] and text[0] in _DASHES:
            text = "--" + bare
    if at < len(line) and line[at] == "=" and text:
        value, at, _ = _piece(line, at + 1, stop="")
        return Word(text, value, was_quoted), at
    return Word(text, None, was_quoted), at


def _piece(line: str, at: int, stop: str) -> tuple[str, int, bool]:
    """A quoted piece, or all up to a blank or `stop`. A quote counts only at the start: `don't` is one word."""
    if at < len(line) and line[at] in _QUOTES:
        closing = _QUOTES[line[at]]
        for end in range(at + 1, len(line)):
            if line[end] in closing:
                if end + 1 < len(line) and not line[end + 1].isspace():
                    break
                return line[at + 1 : end], end + 1, True
        raise QuoteError(at + 1, line[at:])
    start = at
    while at < len(line) and not line[at].isspace() and (line[at] not in stop or at == start):
        at += 1
    piece = line[start:at]
    stray = next((place for place, character in enumerate(piece) if character in _STRAY), -1)
    if stray >= 0:
        raise QuoteError(start + stray + 1, line[start + stray :])
    return piece, at, False


def _joined(words: list[Word]) -> list[Word]:
    """`on=a, b` is `on=a,b`: the blank after a comma is how people write lists."""
    joined: list[Word] = []
    for word in words:
        last = joined[-1] if joined else None
        goes_on = last is not None and last.value is not None and last.value.endswith(",")
        if last is not None and goes_on and word.value is None and not word.text.startswith("-"):
            joined[-1] = Word(last.text, f"{last.value}{word.text}", last.was_quoted)
        else:
            joined.append(word)
    return joined
