"""The records of an event file that are more than one plain scalar, found without decoding the plain ones.

Curves come from the readers; this pass is for what a dashboard shows beside them. It walks the lengths of the file in
blocks and recognises the form `wall time, step, one value of (tag, simple_value)` for all records of a block at once;
only what is left is checked against its checksum and handed out.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bot.measure.readers.checksums import masked
from bot.measure.readers.framing import FOOTER, Batch, Frames

BLOCK = 1 << 20

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

    `known_scalars` (tags as UTF-8) may grow while this runs. Damaged, unfinished and too large records are left out.
    """
    frames = Frames()
    with file.open("rb", buffering=0) as stream:
        while block := stream.read(BLOCK):
            for batch in frames.feed(block):
                if len(batch.starts):
                    yield from _uncommon(batch, known_scalars, file)


def read_record(place: Place) -> bytes | None:
    """The bytes of one record, None if the file no longer holds them intact."""
    try:
        with place.file.open("rb") as stream:
            stream.seek(place.offset)
            found = stream.read(place.length + FOOTER)
    except OSError:
        return None
    payload = found[: place.length]
    checksum = int.from_bytes(found[place.length :], "little")
    return payload if len(found) == place.length + FOOTER and masked(payload) == checksum else None


def _uncommon(batch: Batch, known_scalars: Container[bytes], file: Path) -> Iterator[tuple[Place, bytes]]:
    shape = _Shapes(batch)
    for i in np.flatnonzero(~shape.plain).tolist():
        if shape.single[i] and batch.data[shape.tag_start[i] : shape.tag_end[i]].tobytes() in known_scalars:
            continue
        payload = batch.payload(i)
        if payload is not None:
            yield Place(file, batch.base + int(batch.starts[i]), len(payload)), payload


class _Shapes:
    """What the records of a block look like, for all records at once.

    `plain` and `single` are bool[n] (one simple value; one value of any kind, starting with its tag), the rest int64[n]
    positions in the block. A position is only meaningful where `single` holds.
    """

    def __init__(self, batch: Batch) -> None:
        self._block = batch.data
        self.end = batch.starts + batch.lengths
        at = batch.starts + 9
        fits = self._is(batch.starts, _WALL_TIME)
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
