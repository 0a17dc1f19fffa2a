"""TensorBoard event files, both checksums of every record checked. A damaged record is lost alone and counted."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from tensorboard.compat.proto import event_pb2

from bot.measure.readers.checksums import Offsets
from bot.measure.readers.columns import Columns, Found
from bot.measure.readers.framing import LARGEST, Batch, Frames
from bot.measure.readers.merging import FileContents
from bot.measure.readers.scalars import scalar_of

MOST_BYTES = 4 * 1024**3
_BLOCK = 1 << 20
# larger steps are no numbers of steps; int64 is what curves hold
_MOST_STEP = 2**62


def fits(name: str) -> bool:
    """Whether a file of this name is read here."""
    return "tfevents" in name and not name.endswith((".gz", ".zip", ".profile-empty"))


def read(path: Path) -> FileContents:
    """The scalars of one file. Raises OSError."""
    reader = EventReader()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            reader.feed(block)
            if file.tell() >= MOST_BYTES:
                reader.contents.notes.append(f"Only its first {MOST_BYTES // 1024**3} GiB were read.")
                break
    return reader.close()


@dataclass(slots=True)
class EventReader:
    """One event file as its bytes come; what is found does not depend on where they were cut."""

    contents: FileContents = field(default_factory=FileContents)
    _frames: Frames = field(default_factory=Frames)
    _columns: Columns = field(default_factory=Columns)
    _bad: list[int] = field(default_factory=list)
    _plugins: dict[str, str] = field(default_factory=dict)

    def feed(self, data: bytes) -> None:
        """More bytes of the file."""
        for batch in self._frames.feed(data):
            self._take(batch)
        self.contents.bad_records = len(self._bad) + len(self._frames.bad)
        self.contents.tail_bytes = self._frames.tail

    def close(self) -> FileContents:
        """The contents, with notes on what was left out."""
        bad = sorted(self._bad + self._frames.bad)
        if bad:
            places = ", ".join(str(place) for place in bad[:5])
            self.contents.notes.append(f"{len(bad)} damaged records were left out, at byte {places}.")
        if self._frames.refused:
            size = LARGEST // 1024**2
            self.contents.notes.append(f"{self._frames.refused} records of more than {size} MiB were left out.")
        return self.contents

    def _take(self, batch: Batch) -> None:
        taken = self._columns.take(batch)
        parsed = _Parsed()
        damaged = [int(at) for at in taken.bad]
        for at in taken.left.tolist():
            payload = batch.payload(at)
            if payload is None or not parsed.add(at, payload):
                damaged.append(at)
        self._bad += [batch.place(at) for at in damaged]
        self.contents.records += len(batch.starts) - len(damaged)
        pieces = sorted([*map(_piece, taken.found), *parsed.pieces()], key=lambda piece: int(piece.at[0]))
        # a tag's first metadata says whether its tensors are scalars; what came before it is nobody's
        told: dict[str, int] = {}
        for at, tag, plugin in sorted([*_plugins(taken.found), *parsed.plugins]):
            if tag not in self._plugins:
                self._plugins[tag], told[tag] = plugin, at
        by_tag: dict[str, list[_Piece]] = {}
        for piece in pieces:
            first = told.get(piece.tag, 0) if piece.is_tensor else 0
            if not piece.is_tensor or self._plugins.get(piece.tag) == "scalars":
                by_tag.setdefault(piece.tag, []).append(piece.where(piece.at >= first) if first else piece)
        joined = {tag: _join(some) for tag, some in by_tag.items()}
        for start, step in parsed.restarts:
            if self.contents.purge_from is None:
                self.contents.purge_from = step
            # what was written from this step on is written again
            self.contents.cut(step)
            joined = {tag: one.where((one.at >= start) | (one.steps < step)) for tag, one in joined.items()}
        for tag, one in joined.items():
            points = self.contents.points(tag) if len(one.at) else None
            if points is not None:
                points.extend(one.steps, one.wall_times, one.values)


class _Piece(NamedTuple):
    """Points of one tag: numbers of their records in the batch, ascending, and what they hold."""

    tag: str
    is_tensor: bool
    at: Offsets
    steps: NDArray[np.int64]
    wall_times: NDArray[np.float64]
    values: NDArray[np.float64]

    def where(self, which: NDArray[np.bool_] | Offsets) -> "_Piece":
        return _Piece(
            self.tag, self.is_tensor, self.at[which], self.steps[which], self.wall_times[which], self.values[which]
        )


@dataclass(slots=True)
class _Parsed:
    """What protobuf found in the records that it read."""

    plugins: list[tuple[int, str, str]] = field(default_factory=list)
    restarts: list[tuple[int, int]] = field(default_factory=list)
    _points: dict[tuple[str, bool], list[tuple[int, int, float, float]]] = field(default_factory=dict)

    def add(self, at: int, payload: bytes) -> bool:
        """One more record; whether it is an event."""
        try:
            event = event_pb2.Event.FromString(payload)
            numbers = [(value, scalar_of(value)) for value in event.summary.value]
        except DecodeError:
            return False
        if event.session_log.status == event_pb2.SessionLog.START:
            self.restarts.append((at, event.step))
        for value, number in numbers:
            plugin = value.metadata.plugin_data.plugin_name
            if plugin:
                self.plugins.append((at, value.tag, plugin))
            if number is not None and abs(event.step) <= _MOST_STEP:
                point = (at, event.step, event.wall_time, number)
                self._points.setdefault((value.tag, value.HasField("tensor")), []).append(point)
        return True

    def pieces(self) -> Iterator[_Piece]:
        """The points by tag."""
        for (tag, is_tensor), points in self._points.items():
            at, steps, wall_times, values = zip(*points, strict=True)
            columns = (np.array(at), np.array(steps, dtype=np.int64), np.array(wall_times), np.array(values))
            yield _Piece(tag, is_tensor, *columns)


def _piece(found: Found) -> _Piece:
    return _Piece(found.kind.tag, found.kind.is_tensor, *found[1:])


def _plugins(found: list[Found]) -> Iterator[tuple[int, str, str]]:
    for one in found:
        if one.kind.plugin:
            yield int(one.at[0]), one.kind.tag, one.kind.plugin


def _join(pieces: list[_Piece]) -> _Piece:
    """One piece in the order of the records; wall times that are not known are NaN."""
    joined = pieces[0]
    if len(pieces) > 1:
        joined = _Piece(
            joined.tag,
            joined.is_tensor,
            np.concatenate([piece.at for piece in pieces]),
            np.concatenate([piece.steps for piece in pieces]),
            np.concatenate([piece.wall_times for piece in pieces]),
            np.concatenate([piece.values for piece in pieces]),
        )
        joined = joined.where(np.argsort(joined.at, kind="stable"))
    return joined._replace(wall_times=np.where(joined.wall_times == 0, np.nan, joined.wall_times))
