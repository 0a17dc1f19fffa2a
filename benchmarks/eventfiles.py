"""Event files to measure with, written as fast as Python can."""

import struct
from collections.abc import Iterable
from pathlib import Path

import google_crc32c
from tensorboard.compat.proto import event_pb2


def write_scalars(path: Path, tags: Iterable[str], steps: int, *, as_tensors: bool = False) -> Path:
    """A file with one value of every tag a step; `as_tensors` as TensorFlow 2 writes them. The values differ."""
    tags = list(tags)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb", buffering=1 << 20) as file:
        file.write(_record(event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString()))
        for step in range(steps):
            for at, tag in enumerate(tags):
                event = event_pb2.Event(step=step, wall_time=1.7e9 + step * 0.37)
                value = event.summary.value.add(tag=tag)
                number = 1.0 / (1 + step + at)
                if as_tensors:
                    value.metadata.plugin_data.plugin_name = "scalars"
                    value.tensor.dtype = 1
                    value.tensor.tensor_shape.SetInParent()
                    value.tensor.tensor_content = struct.pack("<f", number)
                else:
                    value.simple_value = number
                file.write(_record(event.SerializeToString()))
    return path


def _record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return b"".join((length, _masked(length), payload, _masked(payload)))


def _masked(data: bytes) -> bytes:
    checksum = google_crc32c.value(data)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF)
