"""CRC-32C of many byte strings at once, masked as event files store it.

A CRC is linear: that of a string is the exclusive or of what each byte adds at its place, and of a constant for its
length. So a table for each place from the end gives the checksums of a whole matrix of bytes with a few numpy calls.
"""

from functools import cache

import google_crc32c
import numpy as np
from numpy.typing import NDArray

LONGEST = 512
"""Bytes of the longest rows; longer strings are checked one by one."""

Bytes = NDArray[np.uint8]
Checksums = NDArray[np.uint32]
Offsets = NDArray[np.int64]

_STORED = np.arange(4)
_MASK = 0xA282EAD8


def masked(data: bytes) -> int:
    """The checksum of one string."""
    checksum: int = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def parts(rows: Bytes) -> Checksums:
    """What each byte of `rows` uint8[n, length] adds to the checksum of its row: uint32[n, length]."""
    length = rows.shape[1]
    # a place from the end and a byte make one index into the table
    added: Checksums = np.take(_table(), rows + np.arange(length - 1, -1, -1, dtype=np.int64) * 256)
    return added


def joined(added: Checksums) -> Checksums:
    """The checksums of rows from what their bytes add: uint32[n]."""
    plain: Checksums = np.bitwise_xor.reduce(added, axis=1) ^ np.uint32(google_crc32c.value(bytes(added.shape[1])))
    shifted: Checksums = plain >> np.uint32(15) | plain << np.uint32(17)
    return shifted + np.uint32(_MASK)


def stored(data: Bytes, places: Offsets) -> Checksums:
    """The checksums that stand at `places`: uint32[n]."""
    checksums: Checksums = np.ascontiguousarray(data[places[:, None] + _STORED]).view("<u4")[:, 0]
    return checksums


@cache
def _table() -> Checksums:
    """For each place from the end and each byte: what it adds. uint32[LONGEST * 256], flat."""
    bare = google_crc32c.value(b"\0")
    last = np.array([google_crc32c.value(bytes([byte])) ^ bare for byte in range(256)], dtype=np.uint32)
    rows = [last]
    while len(rows) < LONGEST:
        # one byte further from the end: the register takes in one more zero
        rows.append(last[rows[-1] & np.uint32(0xFF)] ^ (rows[-1] >> np.uint32(8)))
    return np.concatenate(rows)
