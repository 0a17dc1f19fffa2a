"""Reads a tree of YAML as what a schema wants, and collects a fault with its place for everything that is not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bot.core.nouns import ConfigFault
from bot.core.options import NAME
from bot.core.quantities import decimal, seconds, whole
from bot.core.wording import a, code, did_you_mean, listed
from bot.core.yaml12 import Entries, Items, Node, Scalar

_Number = TypeVar("_Number", int, float)
_EMPTY = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Field:
    """One value of the file: where it is, as a path of keys and as a place, and the list that its faults go to.

    Every reader gives None (or nothing) after a fault, so that reading goes on and all faults come at once.
    """

    node: Node
    where: str
    faults: list[ConfigFault]

    def fault(self, sentence: str, hint: str = "") -> None:
        """Something is wrong with this value."""
        self.faults.append(
            ConfigFault(line=self.node.line, column=self.node.column, where=self.where, sentence=sentence, hint=hint)
        )

    @property
    def is_empty(self) -> bool:
        """Nothing, `~` or `null`."""
        return isinstance(self.node, Scalar) and self.node.plain and self.node.text in _EMPTY

    def entries(self, known: Sequence[str] | None = None, required: Sequence[str] = ()) -> dict[str, "Field"]:
        """The fields of a mapping. Keys outside `known` are faults; None knows all. Nothing is an empty mapping."""
        if self.is_empty:
            entries: tuple[tuple[Scalar, Node], ...] = ()
        elif isinstance(self.node, Entries):
            entries = self.node.entries
        else:
            self.fault("This must be a mapping (`key: value` lines).")
            return {}
        found = {}
        for key, node in entries:
            where = f"{self.where}.{key.text}" if self.where else key.text
            if known is not None and key.text not in known:
                Field(key, where, self.faults).fault(
                    f"There is no key {code(key.text)} here.", did_you_mean(key.text, known)
                )
            else:
                found[key.text] = Field(node, where, self.faults)
        for name in required:
            if name not in found and not any(key.text == name for key, _ in entries):
                self.fault(f"The key {code(name)} is missing.")
        return found

    def named(self, what: str, reserved: Sequence[str] = ()) -> dict[str, "Field"]:
        """The fields of a mapping whose keys are names that people give."""
        found = self.entries()
        for (key, _), field in zip(_entries(self.node), found.values(), strict=True):
            if not NAME.fullmatch(key.text):
                Field(key, field.where, self.faults).fault(
                    f"{code(key.text)} cannot be the name of {a(what)}.",
                    "Names are made of letters, digits, `.`, `_` and `-`, and are at most 100 long.",
                )
            elif key.text.lower() in reserved:
                Field(key, field.where, self.faults).fault(
                    f"{a(what).capitalize()} cannot be called {code(key.text)}: the word means something in a command."
                )
        return found

    def text(self, *, may_be_empty: bool = False) -> str | None:
        """A single text, as it stands in the source: `3.10` is "3.10", `no` is "no"."""
        if not isinstance(self.node, Scalar):
            self.fault("This must be a single text.")
            return None
        if (self.is_empty or not self.node.text.strip()) and not (may_be_empty and not self.node.plain):
            self.fault("This is empty.")
            return None
        return self.node.text

    def each(self) -> tuple["Field", ...]:
        """The values of a list, each with its own place; a single value is a list of one."""
        if not isinstance(self.node, Items):
            return (self,)
        if not self.node.items:
            self.fault("The list is empty.")
        return tuple(Field(node, f"{self.where}[{at}]", self.faults) for at, node in enumerate(self.node.items))

    def texts(self) -> tuple[str, ...]:
        """A list of texts, each once; a single one is a list of one."""
        found = [field.text() for field in self.each()]
        return tuple(dict.fromkeys(text for text in found if text is not None))

    def truth(self) -> bool | None:
        """`true` or `false`; `yes` and `on` are texts."""
        truth = _TRUTHS.get(self.node.text) if isinstance(self.node, Scalar) and self.node.plain else None
        if truth is None:
            self.fault("This must be `true` or `false`.")
        return truth

    def whole(self, lowest: int, highest: int) -> int | None:
        """A whole number in digits."""
        return self._plain(
            lambda text: whole(text, lowest, highest), f"a whole number from {lowest} to {highest}, without quotes"
        )

    def number(self) -> float | None:
        """A number in digits."""
        return self._plain(decimal, "a number, without quotes")

    def duration_s(self) -> int | None:
        """Seconds of `90m`, `6h`, `1h30m`."""
        text = self.text()
        if text is None:
            return None
        found = seconds(text)
        if found is None:
            hint = f"Did you mean `{text}s` or `{text}m`?" if text.isascii() and text.isdigit() else ""
            self.fault(f"{code(text)} is no duration. It is written like `90m`, `6h` or `1h30m`, up to 30 days.", hint)
        return found

    def one_of(self, names: Sequence[str]) -> str | None:
        """One of some words."""
        text = self.text()
        if text is None or text in names:
            return text
        self.fault(f"{code(text)} is none of {listed(names, 'or')}.", did_you_mean(text, names))
        return None

    def _plain(self, read: Callable[[str], _Number | None], what: str) -> _Number | None:
        found = read(self.node.text) if isinstance(self.node, Scalar) and self.node.plain else None
        if found is None:
            shown = f"{code(self.node.text)} is not" if isinstance(self.node, Scalar) else "This is not"
            self.fault(f"{shown} {what}.")
        return found


def _entries(node: Node) -> tuple[tuple[Scalar, Node], ...]:
    return node.entries if isinstance(node, Entries) else ()
