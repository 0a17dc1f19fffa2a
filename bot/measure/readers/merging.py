"""One run directory from its files: a training that went on in a new file, or several that write at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bot.measure.reading import ROOT, Curve


@dataclass(slots=True)
class Points:
    """What one file holds of one tag, in the order of the file. Wall times that are not known are NaN."""

    steps: list[int] = field(default_factory=list)
    wall_times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: int, wall_time: float, value: float) -> None:
        """One more point."""
        self.steps.append(step)
        self.wall_times.append(wall_time)
        self.values.append(value)

    def cut(self, from_step: int) -> int:
        """Drop points from a step on; how many there were."""
        kept = [at for at, step in enumerate(self.steps) if step < from_step]
        gone = len(self.steps) - len(kept)
        if gone:
            self.steps = [self.steps[at] for at in kept]
            self.wall_times = [self.wall_times[at] for at in kept]
            self.values = [self.values[at] for at in kept]
        return gone


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

    def points(self, tag: str) -> Points:
        """The points of a tag, to be added to."""
        return self.tags.setdefault(tag, Points())


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
            if not points.values:
                continue
            place = next((stream for stream in streams if not _overlap(stream.get(tag), points)), None)
            if place is None:
                place = {}
                streams.append(place)
            older = place.setdefault(tag, Points())
            dropped += older.cut(points.steps[0])
            older.steps += points.steps
            older.wall_times += points.wall_times
            older.values += points.values
    notes = []
    if len(streams) > 1:
        notes.append(f"{len(streams)} writers wrote to {_name(run)} at the same time; their values are kept apart.")
    curves = []
    for at, stream in enumerate(streams):
        where = run if at == 0 else f"writer-{at + 1}" if run == ROOT else f"{run}/writer-{at + 1}"
        curves += [_curve(where, tag, points) for tag, points in stream.items()]
        notes += _backwards(where, stream)
    return Merged(curves=tuple(curves), dropped=dropped, notes=tuple(notes))


def _overlap(older: Points | None, newer: Points) -> bool:
    if older is None or not older.values:
        return False
    last, first = older.wall_times[-1], newer.wall_times[0]
    return not math.isnan(last) and not math.isnan(first) and first < last


def _curve(run: str, tag: str, points: Points) -> Curve:
    return Curve(
        run=run,
        tag=tag,
        steps=np.array(points.steps, dtype=np.int64),
        wall_times=np.array(points.wall_times, dtype=np.float64),
        values=np.array(points.values, dtype=np.float64),
    )


def _backwards(run: str, tags: Mapping[str, Points]) -> list[str]:
    """Steps that fall and rise again; steps that only fall are somebody's way of counting."""
    said = []
    for tag, points in tags.items():
        differences = np.diff(np.array(points.steps, dtype=np.int64))
        if np.any(differences < 0) and np.any(differences > 0):
            said.append(
                f"The steps of {_name(tag)} in {_name(run)} go back at some point; the order of the file is kept."
            )
    return said


def _name(text: str) -> str:
    return f"`{text[:100]}`"
