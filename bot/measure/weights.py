"""How many numbers a checkpoint holds, from the header of its safetensors files; no weight is read."""

import json
import re
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
    files = [file for file in folder.rglob("*.safetensors") if file.is_file() and not file.is_symlink()]
    if not files:
        return None
    last = max(files, key=lambda file: _natural(file.relative_to(folder).as_posix()))
    shard = _SHARD.fullmatch(last.name)
    parts = [last] if shard is None else [file for file in files if _is_part(file, last, shard[1])]
    found = [_header(file) for file in parts]
    if not all(found):
        return None
    return Weights(sum(one.numbers for one in found if one), sum(one.size for one in found if one))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d{0,18})", name)]


def _is_part(file: Path, of: Path, name: str) -> bool:
    match = _SHARD.fullmatch(file.name)
    return file.parent == of.parent and match is not None and match[1] == name


def _header(file: Path) -> Weights | None:
    """The tensors of one file; None where header, shapes and size of the file do not agree."""
    size = file.stat().st_size
    with file.open("rb") as source:
        length = int.from_bytes(source.read(8), "little")
        if not 2 <= length <= min(LONGEST_HEADER, size - 8):
            return None
        try:
            header = json.loads(source.read(length))
        except (ValueError, RecursionError):
            return None
    if not isinstance(header, dict):
        return None
    tensors = [_tensor(told, size - 8 - length) for name, told in header.items() if name != "__metadata__"]
    if not all(tensors):
        return None
    return Weights(sum(one.numbers for one in tensors if one), sum(one.size for one in tensors if one))


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
