"""Nouns to JSON text and back, for columns that are only read back whole."""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def dump(value: Any) -> str:
    """JSON text of a noun, a tuple of nouns, or plain values."""
    return msgspec.json.encode(value, order="deterministic").decode()


def load(kind: type[T], text: str) -> T:
    """The noun that `dump` wrote. Raises msgspec.ValidationError when the text is not of that kind."""
    return msgspec.json.decode(text, type=kind, strict=False)
