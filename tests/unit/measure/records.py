"""Event files made by hand, byte by byte, independently of the reader."""

import struct

import google_crc32c
from tensorboard.compat.proto import event_pb2


def masked(data: bytes) -> int:
    """The checksum as the format stores it."""
    checksum = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(payload: bytes) -> bytes:
    """One record: length, its checksum, the data, its checksum."""
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked(length)) + payload + struct.pack("<I", masked(payload))


def scalar(tag: str, step: int, value: float, wall_time: float = 1000.0) -> bytes:
    """An event with one simple value."""
    event = event_pb2.Event(step=step, wall_time=wall_time)
    event.summary.value.add(tag=tag, simple_value=value)
    return bytes(event.SerializeToString())


def file_of(tag: str, count: int, *, first_step: int = 0, wall_time: float = 1000.0) -> bytes:
    """A version record, then `count` values 0.0, 0.5, 1.0 ... one second apart."""
    version = event_pb2.Event(wall_time=wall_time, file_version="brain.Event:2").SerializeToString()
    events = [scalar(tag, first_step + at, at / 2, wall_time + at) for at in range(count)]
    return b"".join(record(payload) for payload in (version, *events))


def places(data: bytes) -> list[int]:
    """Where each record begins, and where the last one ends."""
    found, at = [], 0
    while at < len(data):
        found.append(at)
        (length,) = struct.unpack_from("<Q", data, at)
        at += 12 + length + 4
    return [*found, at]
