"""The records of an event file that are more than one plain scalar, found without decoding the plain ones.

Curves come from the readers; this pass is for what a dashboard shows beside them. It walks the lengths of the file in
blocks and recognises the form `wall time, step, one value of (tag, simple_value)` for all records of a block at once;
only what is left is checked against its checksum and handed out.
"""

import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np
from numpy.typing import NDArray

HEADER = 12  # length (8 bytes) and its checksum (4)
FOOTER = 4
LARGEST_RECORD = 32 << 20
BLOCK = 8 << 20
_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")

# the bytes that stand before the fields of an event, a summary and its value
_WALL_TIME, _STEP, _SUMMARY, _VALUE, _TAG, _SIMPLE_VALUE = 0x09, 0x10, 0x2A, 0x0A, 0x0A, 0x15


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bytes of one record are: in bytes from the start of the file, without header and footer."""

    file: Path
    offset: int
    length: int


def uncommon_records(file: Path, known_scalars: Container[bytes]) -> Iterator[tuple[Place, bytes]]:
    """Intact records of `file` that are neither a plain scalar nor the only value of a tag in `known_scalars`.

    `known_scalars` (tags as UTF-8) may grow while this runs. Damaged and unfinished records and those above
    LARGEST_RECORD are left out.
    """
    with file.open("rb") as stream:
        base = 0
        while True:
            stream.seek(base)
            block = stream.read(BLOCK)
            offsets, end = _walk(block)
            if not len(offsets):
                skipped = _oversized(stream, base, block)
                if skipped is None:
                    return
                if isinstance(skipped, int):
                    base = skipped
                    continue
                block = skipped
                offsets, end = _walk(block)
                if not len(offsets):
                    return
            yield from _uncommon(block, offsets, known_scalars, file, base)
            base += end


def read_record(place: Place) -> bytes | None:
    """The bytes of one record, None if the file no longer holds them intact."""
    try:
        with place.file.open("rb") as stream:
            stream.seek(place.offset)
            found = stream.read(place.length + FOOTER)
    except OSError:
        return None
    payload = found[: place.length]
    if len(found) != place.length + FOOTER or _masked(payload) != _CHECKSUM.unpack_from(found, place.length)[0]:
        return None
    return payload


def _walk(block: bytes) -> tuple[NDArray[np.int64], int]:
    """Starts of the records that lie wholly in the block, and where the last one ends."""
    starts = []
    at, size, read = 0, len(block), _LENGTH.unpack_from
    while at + HEADER <= size:
        end = at + HEADER + read(block, at)[0] + FOOTER
        if end > size:
            break
        starts.append(at)
        at = end
    return np.array(starts, np.int64), at


def _oversized(stream: BinaryIO, base: int, block: bytes) -> int | bytes | None:
    """What to do with a record that no block holds: its bytes, or the offset behind it, or None at the end."""
    if len(block) < BLOCK or _masked(block[:8]) != _CHECKSUM.unpack_from(block, 8)[0]:
        return None
    whole = HEADER + int(_LENGTH.unpack_from(block)[0]) + FOOTER
    if whole > LARGEST_RECORD:
        return base + whole
    stream.seek(base)
    return stream.read(whole)


def _uncommon(
    block: bytes, starts: NDArray[np.int64], known_scalars: Container[bytes], file: Path, base: int
) -> Iterator[tuple[Place, bytes]]:
    shape = _Shapes(np.frombuffer(block, np.uint8), starts)
    for i in np.flatnonzero(~shape.plain).tolist():
        if shape.single[i] and block[shape.tag_start[i] : shape.tag_end[i]] in known_scalars:
            continue
        start, end = int(shape.start[i]), int(shape.end[i])
        payload = block[start:end]
        if _masked(payload) == _CHECKSUM.unpack_from(block, end)[0]:
            yield Place(file, base + start, end - start), payload


class _Shapes:
    """What the records of a block look like, for all records at once.

    `plain` and `single` are bool[n] (one simple value; one value of any kind, starting with its tag), the rest int64[n]
    positions in the block. A position is only meaningful where `single` holds.
    """

    def __init__(self, block: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self._block = block
        lengths = np.lib.stride_tricks.sliding_window_view(block, 8)[starts].copy().view("<i8").ravel()
        self.start = starts + HEADER
        self.end = self.start + lengths
        at = self.start + 9
        fits = self._is(self.start, _WALL_TIME)
        at = np.where(self._is(at, _STEP), self._varint(at + 1)[1], at)
        fits &= self._is(at, _SUMMARY)
        size, at = self._varint(at + 1)
        fits &= (at + size == self.end) & self._is(at, _VALUE)
        size, at = self._varint(at + 1)
        fits &= (at + size == self.end) & self._is(at, _TAG)
        size, self.tag_start = self._varint(at + 1)
        self.tag_end = self.tag_start + size
        self.single = fits & (self.tag_end <= self.end) & (size >= 0)
        self.plain = self.single & (self.tag_end + 5 == self.end) & self._is(self.tag_end, _SIMPLE_VALUE)

    def _at(self, position: NDArray[np.int64]) -> NDArray[np.uint8]:
        return self._block[np.clip(position, 0, len(self._block) - 1)]

    def _is(self, position: NDArray[np.int64], wanted: int) -> NDArray[np.bool_]:
        return np.equal(self._at(position), wanted)

    def _varint(self, position: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers that start at the positions (modulo 2**63), and where they end."""
        number = np.zeros(len(position), np.int64)
        more = np.ones(len(position), np.bool_)
        for shift in range(0, 70, 7):
            byte = self._at(position).astype(np.int64)
            if shift < 63:
                number |= np.where(more, (byte & 0x7F) << shift, 0)
            position = position + more
            more = more & (byte >= 0x80)
            if not more.any():
                break
        return number, position


def _masked(payload: bytes) -> int:
    checksum: int = google_crc32c.value(payload)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
