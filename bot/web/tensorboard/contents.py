"""What one run folder shows: curves from the readers, thinned to what a page asks for, and an index of the rest."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bot.measure.curves import downsample
from bot.measure.readers import Reading, read_folder
from bot.measure.reading import Curve
from bot.web.tensorboard.index import LONGEST_TAG, MOST_TAGS, SCALAR, Directory, Entry, Label, index_folder

MOST_RUNS = 1_000
MOST_CURVE_POINTS = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """One scalar tag, thinned. Wall times that are not known are 0; the maxima are those of the whole curve."""

    label: Label
    curve: Curve
    max_step: int
    max_wall_time: float


@dataclass(frozen=True, slots=True)
class RunContents:
    """One directory, which is a run in TensorBoard's words. `start_time` in seconds since the epoch."""

    start_time: float | None
    lines: Mapping[str, Line]
    entries: Mapping[str, Entry]


Contents = Mapping[str, RunContents]
"""The runs below one folder by relative path, "." for the folder itself."""


def read_contents(folder: Path) -> Contents:
    """Everything below `folder`; nothing if it does not exist (yet)."""
    if not folder.is_dir():
        return {}
    indexed = index_folder(folder)
    return _join(read_folder(folder), indexed)


def size_of(contents: Contents) -> int:
    """How many points are kept in memory for `contents`."""
    return sum(
        1
        + sum(len(line.curve) for line in run.lines.values())
        + sum(len(entry.points) for entry in run.entries.values())
        for run in contents.values()
    )


def _join(reading: Reading, indexed: Mapping[str, Directory]) -> Contents:
    curves: dict[str, dict[str, Curve]] = {}
    for (run, tag), curve in reading.curves.items():
        tags = curves.setdefault(run, {})
        if len(curve) and len(tag) <= LONGEST_TAG and len(tags) < MOST_TAGS:
            tags[tag] = curve
    joined = {}
    for run in sorted(curves.keys() | indexed.keys())[:MOST_RUNS]:
        directory = indexed.get(run, Directory())
        lines = {tag: _line(curve, directory.scalars.get(tag)) for tag, curve in curves.get(run, {}).items()}
        joined[run] = RunContents(directory.start_time, lines, directory.entries)
    return joined


def _line(curve: Curve, label: Label | None) -> Line:
    dated = replace(curve, wall_times=np.nan_to_num(curve.wall_times, nan=0.0))
    return Line(
        label=label or Label("scalars", SCALAR, b"", "", curve.tag),
        curve=downsample(dated, MOST_CURVE_POINTS) if len(dated) > MOST_CURVE_POINTS else dated,
        max_step=int(dated.steps.max()),
        max_wall_time=float(dated.wall_times.max()),
    )
