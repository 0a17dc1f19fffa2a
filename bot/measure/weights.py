"""How many numbers a checkpoint holds, from the header of its safetensors files; no weight is read."""

import json
import re
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""

_SHARD = re.compile(r"(.*)-\d+-of-\d+\.safetensors")
_BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
_BYTES |= {"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}


class Weights(NamedTuple):
    """Numbers and bytes of all tensors."""

    numbers: int
    size: int


def weights_of(folder: Path) -> Weights | None:
    """The last checkpoint below `folder`, by name with numbers in their order; one in several files is added up.

    None where there is none, or where a file contradicts itself. Raises OSError.
    """
    files = {
        file.relative_to(folder).as_posix(): file
        for file in folder.rglob("*.safetensors")
        if file.is_file() and not file.is_symlink()
    }
    parts = [_read(files[name]) for name in last_checkpoint(files)]
    return total(parts) if parts else None


def last_checkpoint(names: Iterable[str]) -> tuple[str, ...]:
    """The files that the last checkpoint is made of, among paths below the folder of checkpoints."""
    files = [name for name in names if name.endswith(".safetensors")]
    if not files:
        return ()
    last = max(files, key=_natural)
    shard = _SHARD.fullmatch(last)
    return (last,) if shard is None else tuple(name for name in files if _is_part(name, shard[1]))


def header_end(start: bytes, size: int) -> int | None:
    """Where the header ends in a file of `size` bytes that begins so; None when that cannot be."""
    length = int.from_bytes(start[:8], "little")
    return 8 + length if len(start) >= 8 and 2 <= length <= min(LONGEST_HEADER, size - 8) else None


def counted(start: bytes, size: int) -> Weights | None:
    """The tensors of one file, from its bytes up to `header_end` at least; None where these and its size disagree."""
    end = header_end(start, size)
    if end is None or len(start) < end:
        return None
    try:
        header = json.loads(start[8:end])
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict):
        return None
    return total([_tensor(told, size - end) for name, told in header.items() if name != "__metadata__"])


def total(parts: Sequence[Weights | None]) -> Weights | None:
    """All of them together; None when one is not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Weights(sum(one.numbers for one in known), sum(one.size for one in known))


def _read(file: Path) -> Weights | None:
    size = file.stat().st_size
    with file.open("rb") as source:
        start = source.read(8)
        end = header_end(start, size)
        return counted(start + source.read(end - 8), size) if end else None


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d{0,18})", name)]


def _is_part(name: str, of: str) -> bool:
    match = _SHARD.fullmatch(name)
    return match is not None and match[1] == of


def _tensor(told: object, room: int) -> Weights | None:
    if not isinstance(told, dict):
        return None
    shape, offsets = told.get("shape"), told.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        return None
    if not all(type(number) is int and number >= 0 for number in (*shape, *offsets)):
        return None
    count: int = prod(shape)
    start, end = offsets
    wide = _BYTES.get(str(told.get("dtype")))
    if not start <= end <= room or (wide is not None and end - start != count * wide):
        return None
    return Weights(count, end - start)
