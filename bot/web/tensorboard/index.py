"""What event files hold beside curves: histograms, texts, images, graphs, hyperparameters.

An index keeps where each value is, not the value: a page shows few of them, and images are large.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from tensorboard import data_compat, dataclass_compat
from tensorboard.compat.proto import event_pb2, summary_pb2

from bot.web.tensorboard.records import Place, read_record, uncommon_records

MOST_FILES = 5_000
MOST_TAGS = 2_000
LONGEST_TAG = 500
MOST_POINTS = 2_000
MOST_BLOBS = 200
SCALAR: int = summary_pb2.DATA_CLASS_SCALAR


@dataclass(frozen=True, slots=True)
class Label:
    """What TensorBoard wants to know of a tag: whose it is, of which class, how it is called."""

    plugin: str
    data_class: int
    content: bytes
    description: str
    display_name: str


@dataclass(frozen=True, slots=True)
class Point:
    """One value of one tag; `blobs` is how many blobs are in it."""

    step: int
    wall_time: float
    blobs: int
    place: Place


@dataclass(slots=True)
class Entry:
    """All values of one tag, thinned evenly beyond MOST_POINTS. `metadata` is the message of its first value."""

    label: Label
    metadata: Any
    points: list[Point] = field(default_factory=list)
    _stride: int = 1
    _seen: int = 0
    _last: Point | None = None

    def add(self, point: Point) -> None:
        self._last = point
        if self._seen % self._stride == 0:
            self.points.append(point)
        self._seen += 1
        if len(self.points) > MOST_POINTS:
            self.points = self.points[::2]
            self._stride *= 2

    def close(self) -> None:
        """The last value always belongs to what is shown."""
        if self._last is not None and self.points[-1] is not self._last:
            self.points.append(self._last)


@dataclass(slots=True)
class Directory:
    """One directory with event files. `scalars` are labels of tags whose values the readers have."""

    start_time: float | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    scalars: dict[str, Label] = field(default_factory=dict)
    known_scalars: set[bytes] = field(default_factory=set)


def index_folder(folder: Path) -> dict[str, Directory]:
    """Directories with event files below `folder`, by path relative to it ("." for itself)."""
    found: dict[str, Directory] = {}
    for file in _event_files(folder):
        directory = found.setdefault(file.parent.relative_to(folder).as_posix(), Directory())
        for place, payload in uncommon_records(file, directory.known_scalars):
            try:
                event = event_pb2.Event.FromString(payload)
            except DecodeError:
                continue
            if directory.start_time is None:
                directory.start_time = event.wall_time
            _add(directory, event, place)
    for directory in found.values():
        for entry in directory.entries.values():
            entry.close()
    return found


def values_of(entry: Entry, tag: str, points: list[Point]) -> Iterator[tuple[Point, Any]]:
    """The tensors (messages) at `points` of `entry`, without those that the files no longer hold."""
    for point in points:
        payload = read_record(point.place)
        if payload is None:
            continue
        for value in _modern(event_pb2.Event.FromString(payload), {tag: entry.metadata}):
            if value.tag == tag:
                yield point, value.tensor
                break


def _event_files(folder: Path) -> Iterator[Path]:
    files = []
    for parent, _, names in os.walk(folder):
        files += [Path(parent, name) for name in names if "tfevents" in name]
    for file in sorted(files)[:MOST_FILES]:
        if file.is_file() and not file.is_symlink():
            yield file


def _add(directory: Directory, event: Any, place: Place) -> None:
    known = {tag: entry for value in event.summary.value if (entry := directory.entries.get(tag := value.tag))}
    metadata = {tag: entry.metadata for tag, entry in known.items()}
    for value in event.summary.value if _needs_no_change(event, known) else _modern(event, metadata):
        entry = known.get(value.tag) or _new_entry(directory, value, metadata)
        if entry is not None:
            entry.add(Point(event.step, event.wall_time, _blobs(value), place))


def _needs_no_change(event: Any, known: dict[str, Entry]) -> bool:
    """Whether nothing would be learnt from bringing a summary into today's form, which takes long for histograms."""
    return event.WhichOneof("what") == "summary" and all(
        value.tag in known and known[value.tag].label.plugin != "audio" for value in event.summary.value
    )


def _modern(event: Any, metadata: dict[str, Any]) -> list[Any]:
    """The values of an event in today's form; `metadata` has the first metadata of each tag and grows."""
    modern = dataclass_compat.migrate_event(data_compat.migrate_event(event), metadata)
    return [value for one in modern if one.WhichOneof("what") == "summary" for value in one.summary.value]


def _new_entry(directory: Directory, value: Any, metadata: dict[str, Any]) -> Entry | None:
    """An entry for a tag seen for the first time; None if it is a scalar's, nobody's, or one too many."""
    tag, label = value.tag, _label(value.metadata)
    if tag in directory.entries:
        return directory.entries[tag]
    full = len(directory.entries) + len(directory.scalars) >= MOST_TAGS
    if full or not 0 < len(tag) <= LONGEST_TAG or label.data_class == summary_pb2.DATA_CLASS_UNKNOWN:
        return None
    if label.data_class == SCALAR:
        directory.scalars.setdefault(tag, label)
        directory.known_scalars.add(tag.encode())
        return None
    first = summary_pb2.SummaryMetadata()
    # a copy: a part of a message keeps the whole message in memory
    first.CopyFrom(metadata.get(tag, value.metadata))
    directory.entries[tag] = Entry(label, first)
    return directory.entries[tag]


def _blobs(value: Any) -> int:
    """How many blobs a value holds. Counted, since its shape may claim anything."""
    return 3 if value.HasField("image") else min(len(value.tensor.string_val), MOST_BLOBS)


def _label(metadata: Any) -> Label:
    return Label(
        plugin=metadata.plugin_data.plugin_name,
        data_class=metadata.data_class,
        content=metadata.plugin_data.content,
        description=metadata.summary_description,
        display_name=metadata.display_name,
    )
