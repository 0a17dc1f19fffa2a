"""One run directory from its files: a training that went on in a new file, or several that write at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bot.measure.reading import ROOT, Curve

LONGEST_TAG = 500
MOST_TAGS = 5_000
Columns = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(slots=True)
class Points:
    """What one file holds of one tag, in the order of the file. Wall times that are not known are NaN."""

    _chunks: list[Columns] = field(default_factory=list)
    _rows: list[tuple[int, float, float]] = field(default_factory=list)

    def add(self, step: int, wall_time: float, value: float) -> None:
        """One more point."""
        self._rows.append((step, wall_time, value))

    def extend(self, *columns: *Columns) -> None:
        """More points: steps int64[n], wall times float64[n], values float64[n]."""
        self._chunks += [*self._added(), columns]

    def columns(self) -> Columns:
        """All points: steps int64[n], wall times float64[n], values float64[n]."""
        self._chunks += self._added()
        if len(self._chunks) != 1:
            none = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
            steps, wall_times, values = zip(none, *self._chunks, strict=True)
            self._chunks = [(np.concatenate(steps), np.concatenate(wall_times), np.concatenate(values))]
        return self._chunks[0]

    @property
    def last_wall_time(self) -> float:
        """Of the last point that is left; NaN without one."""
        self._chunks += self._added()
        return next((float(chunk[1][-1]) for chunk in reversed(self._chunks) if len(chunk[1])), math.nan)

    def cut(self, from_step: int) -> int:
        """Drop points from a step on; how many there were."""
        self._chunks += self._added()
        gone = 0
        for at, (steps, wall_times, values) in enumerate(self._chunks):
            kept = steps < from_step
            if not kept.all():
                self._chunks[at] = (steps[kept], wall_times[kept], values[kept])
                gone += int(np.count_nonzero(~kept))
        return gone

    def _added(self) -> list[Columns]:
        if not self._rows:
            return []
        steps, wall_times, values = zip(*self._rows, strict=True)
        self._rows = []
        return [(np.array(steps, dtype=np.int64), np.array(wall_times, dtype=np.float64), np.array(values, np.float64))]


@dataclass(slots=True, kw_only=True)
class FileContents:
    """One file as read: points by tag, and what was wrong. `purge_from` is the step from which earlier files' points
    do not count any more, as the file itself says."""

    tags: dict[str, Points] = field(default_factory=dict)
    purge_from: int | None = None
    records: int = 0
    bad_records: int = 0
    tail_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    _refused: dict[str, None] = field(default_factory=dict)

    def points(self, tag: str) -> Points | None:
        """The points of a tag, to be added to; None for a tag that is too long or one too many."""
        points = self.tags.get(tag)
        if points is None and 0 < len(tag) <= LONGEST_TAG and len(self.tags) < MOST_TAGS:
            points = self.tags[tag] = Points()
        if points is None and len(self._refused) < MOST_TAGS:
            self._refused[tag[:LONGEST_TAG]] = None
        return points

    def cut(self, from_step: int) -> None:
        """Drop the points of all tags from a step on."""
        for points in self.tags.values():
            points.cut(from_step)

    def close(self) -> None:
        """Name the tags that were refused."""
        if self._refused:
            count, one = len(self._refused), _name(next(iter(self._refused)))
            which = f"{one} and {count - 1} more tags were" if count > 1 else f"{one} was"
            limits = f"at most {MOST_TAGS} tags, with a name of at most {LONGEST_TAG} characters each"
            self.notes.append(f"{which} left out: a file has {limits}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The curves of one run directory; `dropped` counts points that were written again."""

    curves: tuple[Curve, ...]
    dropped: int
    notes: tuple[str, ...]


def merge(run: str, files: Sequence[FileContents]) -> Merged:
    """Join the files of one run directory, oldest first, tag by tag.

    A file that begins after the older ones ended continues them: older points from its first step on are dropped.
    Files that overlap in time are two writers at once; the later ones become runs of their own (`writer-2`, ...).
    """
    if len(files) == 1:
        return Merged(
            curves=tuple(_curve(run, tag, points) for tag, points in files[0].tags.items()),
            dropped=0,
            notes=tuple(_backwards(run, files[0].tags)),
        )
    streams: list[dict[str, Points]] = []
    dropped = 0
    for contents in files:
        if contents.purge_from is not None:
            dropped += sum(points.cut(contents.purge_from) for stream in streams for points in stream.values())
        for tag, points in contents.tags.items():
            steps, wall_times, values = points.columns()
            if not len(steps):
                continue
            place = next((stream for stream in streams if not _overlap(stream.get(tag), wall_times[0])), None)
            if place is None:
                place = {}
                streams.append(place)
            older = place.setdefault(tag, Points())
            dropped += older.cut(int(steps[0]))
            older.extend(steps, wall_times, values)
    notes = []
    if len(streams) > 1:
        notes.append(f"{len(streams)} writers wrote to {_name(run)} at the same time; their values are kept apart.")
    curves = []
    for at, stream in enumerate(streams):
        where = run if at == 0 else f"writer-{at + 1}" if run == ROOT else f"{run}/writer-{at + 1}"
        curves += [_curve(where, tag, points) for tag, points in stream.items()]
        notes += _backwards(where, stream)
    return Merged(curves=tuple(curves), dropped=dropped, notes=tuple(notes))


def _overlap(older: Points | None, first: np.float64) -> bool:
    """Whether a tag was still written when another file began with it; wall times that are not known never tell."""
    return older is not None and bool(older.last_wall_time > first)


def _curve(run: str, tag: str, points: Points) -> Curve:
    steps, wall_times, values = points.columns()
    return Curve(run=run, tag=tag, steps=steps, wall_times=wall_times, values=values)


def _backwards(run: str, tags: Mapping[str, Points]) -> list[str]:
    """Steps that fall and rise again; steps that only fall are somebody's way of counting."""
    said = []
    for tag, points in tags.items():
        differences = np.diff(points.columns()[0])
        if np.any(differences < 0) and np.any(differences > 0):
            said.append(
                f"The steps of {_name(tag)} in {_name(run)} go back at some point; the order of the file is kept."
            )
    return said


def _name(text: str) -> str:
    return f"`{text[:100]}`"
