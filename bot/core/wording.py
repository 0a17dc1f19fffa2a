"""Words that people typed, quoted back to them, and the names that they probably meant."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

SHOWN_CHARACTERS = 60
NEAREST = 3
_SIMILAR = 0.5
# characters that mean something in Markdown or HTML, as entities, which Markdown shows and never reads
_ENTITIES = {character: f"&#{ord(character)};" for character in "\\`*_{}[]<>()#|~@&!$"}


def code(word: str) -> str:
    """The word as inline code that cannot end early, mention anybody or grow without bound."""
    shown = (
        "".join(character if character.isprintable() else " " for character in word)
        .replace("`", "'")
        .replace("|", "¦")
        .strip()
    )
    if len(shown) > SHOWN_CHARACTERS:
        shown = shown[: SHOWN_CHARACTERS - 1] + "…"
    return f"`{shown or ' '}`"


def listed(words: Iterable[str], joint: str = "and") -> str:
    """`a`, `b` and `c`."""
    quoted = [code(word) for word in words]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} {joint} {quoted[-1]}"


def a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    """At most three names, most similar first; names that do not resemble the word are left out."""
    wanted = word[:SHOWN_CHARACTERS].casefold()
    ranked = []
    for position, name in enumerate(dict.fromkeys(names)):
        other = name[:SHOWN_CHARACTERS].casefold()
        similar = SequenceMatcher(None, wanted, other).ratio()
        if wanted and (other.startswith(wanted) or wanted.startswith(other)):
            similar += 0.25
        if similar >= _SIMILAR:
            ranked.append((-similar, position, name))
    return tuple(name for _, _, name in sorted(ranked)[:NEAREST])


def did_you_mean(word: str, names: Sequence[str]) -> str:
    """A sentence that offers the nearest names, else says which there are; empty when there are none."""
    near = nearest(word, names)
    if near:
        return f"Did you mean {listed(near, 'or')}?"
    return one_of(names)


def one_of(names: Sequence[str]) -> str:
    """A sentence that tells the names there are, shortened when there are many; empty when there are none."""
    if not names:
        return ""
    if len(names) > 12:
        return f"There are {', '.join(code(name) for name in names[:10])} and {len(names) - 10} more."
    return f"There {'is' if len(names) == 1 else 'are'} {listed(names)}."


def plain(text: str, longest: int = 200) -> str:
    """Text of a configuration file inside a Markdown table: one line, no markup, no mention, no cell ends."""
    shown = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    if len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return "".join(_ENTITIES.get(character, character) for character in shown)
