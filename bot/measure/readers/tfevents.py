"""TensorBoard event files, both checksums of every record checked. A damaged record is lost alone and counted."""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
from tensorboard.util import tensor_util

from bot.measure.readers.merging import FileContents

HEADER = 12
FOOTER = 4
SCAN_BYTES = 1 << 20
# larger steps are no numbers of steps; int64 is what curves hold
MOST_STEP = 2**62


def fits(name: str) -> bool:
    """Whether a file of this name is read here."""
    return "tfevents" in name and not name.endswith((".gz", ".zip", ".profile-empty"))


def read(path: Path) -> FileContents:
    """The scalars of one file. Raises OSError."""
    contents = FileContents()
    plugins: dict[str, str] = {}
    with path.open("rb", buffering=SCAN_BYTES) as file:
        records = _Records(file, path.stat().st_size)
        for payload in records:
            event = event_pb2.Event()
            try:
                event.ParseFromString(payload)
                _take(event, contents, plugins)
            except (DecodeError, ValueError, TypeError):
                records.bad.append(records.at)
                continue
            contents.records += 1
        contents.bad_records = len(records.bad)
        contents.tail_bytes = records.tail
    if records.bad:
        places = ", ".join(str(place) for place in records.bad[:5])
        contents.notes.append(f"{len(records.bad)} damaged records were left out, at byte {places}.")
    return contents


def _take(event: event_pb2.Event, contents: FileContents, plugins: dict[str, str]) -> None:
    if event.session_log.status == event_pb2.SessionLog.START:
        # what was written from this step on is written again
        for points in contents.tags.values():
            points.cut(event.step)
        if contents.purge_from is None:
            contents.purge_from = event.step
    wall_time = event.wall_time or math.nan
    for value in event.summary.value:
        number = _number(value, plugins)
        if number is not None and abs(event.step) <= MOST_STEP:
            contents.points(value.tag).add(event.step, wall_time, number)


def _number(value: summary_pb2.Summary.Value, plugins: dict[str, str]) -> float | None:
    """The number of a scalar, None for everything else. A tag's first value says which plugin it belongs to."""
    kind = value.WhichOneof("value")
    plugin = value.metadata.plugin_data.plugin_name
    if plugin:
        plugins.setdefault(value.tag, plugin)
    if kind == "simple_value":
        return float(value.simple_value)
    if kind == "tensor" and plugins.get(value.tag) == "scalars":
        return _scalar(value.tensor)
    return None


def _scalar(tensor: tensor_pb2.TensorProto) -> float | None:
    array = np.asarray(tensor_util.make_ndarray(tensor))
    if array.size != 1 or array.dtype.kind not in "biuf":
        return None
    return float(array.reshape(()).astype(np.float64))


@dataclass(slots=True)
class _Records:
    """The payloads of intact records; `bad` are the places of damaged ones, `tail` the bytes of an unfinished end."""

    file: BinaryIO
    size: int
    at: int = 0
    tail: int = 0
    bad: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[bytes]:
        place = 0
        while place < self.size:
            self.file.seek(place)
            header = self.file.read(HEADER)
            length = _length(header)
            if length is None:
                following = self._next(place + 1)
                if following is None:
                    # an end that was cut off inside a header is unfinished, not damaged
                    if len(header) < HEADER:
                        self.tail = self.size - place
                    else:
                        self.bad.append(place)
                    return
                self.bad.append(place)
                place = following
                continue
            end = place + HEADER + length + FOOTER
            if end > self.size:
                self.tail = self.size - place
                return
            payload = self.file.read(length)
            (checksum,) = struct.unpack("<I", self.file.read(FOOTER))
            self.at, place = place, end
            if _masked(payload) == checksum:
                yield payload
            else:
                self.bad.append(self.at)

    def _next(self, start: int) -> int | None:
        """The place of the next header whose checksum fits and whose record lies inside the file."""
        while start + HEADER <= self.size:
            self.file.seek(start)
            block = self.file.read(SCAN_BYTES + HEADER)
            for offset in range(max(0, len(block) - HEADER + 1)):
                length = _length(block[offset : offset + HEADER])
                if length is not None and start + offset + HEADER + length + FOOTER <= self.size:
                    return start + offset
            start += max(1, len(block) - HEADER + 1)
        return None


def _length(header: bytes) -> int | None:
    """The length that a header tells, None when it is cut off or its checksum does not fit."""
    if len(header) < HEADER:
        return None
    length, checksum = struct.unpack("<QI", header)
    return int(length) if _masked(header[:8]) == checksum else None


def _masked(data: bytes) -> int:
    """The checksum as the format stores it."""
    checksum: int = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
