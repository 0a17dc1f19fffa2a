"""The records of an event file as its bytes come: a length, its checksum, the data, its checksum.

What comes out does not depend on where the bytes were cut. A header whose checksum is wrong tells no length; reading
goes on at the next place where a header stands whose checksum is right.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bot.measure.readers.checksums import Bytes, Offsets, joined, masked, parts, stored

HEADER = 12
FOOTER = 4
LARGEST = 64 * 1024 * 1024
"""Bytes of data of the largest record that is looked at; larger ones are passed over."""

_LENGTH = np.arange(8)
_PIECE = 1 << 20
_unpack = struct.Struct("<Q").unpack_from


class Batch(NamedTuple):
    """Whole records in `data` uint8[bytes], which stands at `base` in the file: where the data of each begins, and
    how long it is, int64[n]. Checksums of the data are not looked at yet."""

    data: Bytes
    starts: Offsets
    lengths: Offsets
    base: int

    def place(self, at: int) -> int:
        """Where the record begins in the file."""
        return self.base + int(self.starts[at]) - HEADER

    def payload(self, at: int) -> bytes | None:
        """The data of a record, None if its checksum is wrong."""
        start, end = int(self.starts[at]), int(self.starts[at] + self.lengths[at])
        data = self.data[start:end].tobytes()
        return data if masked(data) == int.from_bytes(self.data[end : end + FOOTER].tobytes(), "little") else None


@dataclass(slots=True)
class Frames:
    """Takes bytes, gives whole records. `bad` are places of headers with a wrong checksum, `refused` counts records
    that were too large."""

    bad: list[int] = field(default_factory=list)
    refused: int = 0
    _waiting: list[bytes] = field(default_factory=list)
    _had: int = 0
    _needed: int = HEADER
    _passing: int = 0
    _base: int = 0
    _lost: bool = False

    @property
    def tail(self) -> int:
        """Bytes of the unfinished record at the end."""
        return 0 if self._lost else self._had

    def feed(self, data: bytes) -> Iterator[Batch]:
        """The records that are whole now."""
        for start in range(0, len(data), _PIECE):
            # no piece holds the whole of a record that is too large
            piece = data[start : start + _PIECE]
            if self._passing:
                passed = min(self._passing, len(piece))
                self._passing -= passed
                self._base += passed
                piece = piece[passed:]
            self._waiting.append(piece)
            self._had += len(piece)
            if self._had >= self._needed:
                yield self._take(b"".join(self._waiting))

    def _take(self, block: bytes) -> Batch:
        found, end = ([], 0) if self._lost else _as_told(block)
        headers = [*found, end] if end + HEADER <= len(block) else found
        right = _are_right(np.frombuffer(block, dtype=np.uint8), np.array(headers, dtype=np.int64))
        if self._lost or not right.all():
            sound = int(np.argmin(right))
            found, end = self._search(block, found[:sound], headers[sound])
        batch = _batch(block, found, self._base)
        self._needed = HEADER
        if not self._lost and end + HEADER <= len(block):
            self._needed = _end(block, end) - end
            if self._needed > LARGEST:
                self.refused += 1
                self._passing = self._needed - (len(block) - end)
                self._needed, end = HEADER, len(block)
        self._waiting, self._had = [block[end:]], len(block) - end
        self._base += end
        return batch

    def _search(self, block: bytes, found: list[int], place: int) -> tuple[list[int], int]:
        """Goes on from a place with a damaged header: more whole records, and the place of the unfinished one."""
        data = np.frombuffer(block, dtype=np.uint8)
        # lengths that are in use have zeros above
        high = data[place + 4 : len(data) - HEADER + 8]
        likely = place + np.flatnonzero((high[:-3] | high[1:-2] | high[2:-1] | high[3:]) == 0)
        known = likely[_are_right(data, likely)].tolist()
        while place + HEADER <= len(block):
            at = bisect_left(known, place)
            if at == len(known) or known[at] > place:
                if not self._lost:
                    self.bad.append(self._base + place)
                self._lost = at == len(known)
                place = len(block) - HEADER + 1 if self._lost else known[at]
                continue
            self._lost = False
            end = _end(block, place)
            if end > len(block):
                break
            found.append(place)
            place = end
        return found, place


def _as_told(block: bytes) -> tuple[list[int], int]:
    """Places of whole records if all lengths are right, and the place of the unfinished one."""
    found, place, size = [], 0, len(block)
    while place + HEADER <= size:
        end = place + _unpack(block, place)[0] + HEADER + FOOTER
        if end > size:
            break
        found.append(place)
        place = end
    return found, place


def _end(block: bytes, place: int) -> int:
    length: int = _unpack(block, place)[0]
    return place + HEADER + length + FOOTER


def _are_right(data: Bytes, places: Offsets) -> NDArray[np.bool_]:
    """Which headers have the right checksum."""
    if not len(places):
        return np.ones(0, dtype=np.bool_)
    right: NDArray[np.bool_] = joined(parts(data[places[:, None] + _LENGTH])) == stored(data, places + 8)
    return right


def _batch(block: bytes, found: list[int], base: int) -> Batch:
    data = np.frombuffer(block, dtype=np.uint8)
    places = np.array(found, dtype=np.int64)
    lengths = data[places[:, None] + _LENGTH] if len(found) else np.empty((0, 8), dtype=np.uint8)
    told = np.ascontiguousarray(lengths).view("<u8")[:, 0].astype(np.int64)
    return Batch(data, places + HEADER, told, base)
