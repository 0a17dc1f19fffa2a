"""Curves as people look at them: thinned so that no extreme is lost, several runs as one, and where they got to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bot.measure.reading import Curve

Floats = NDArray[np.float64]
Trace = tuple[NDArray[np.int64] | Floats, Floats]
"""Steps [n] and values float64[n] of one run; values may be NaN or infinite."""


def downsample(curve: Curve, points: int) -> Curve:
    """At most `points` points (at least 4) of a curve: the first, the last, and of each stretch in between its lowest
    and highest value, or its first where it holds none that is finite. Order is kept."""
    count = len(curve)
    if points < 4:
        raise ValueError("a curve is thinned to 4 points or more")
    if count <= points:
        return curve
    kept = {0, count - 1}
    for stretch in np.array_split(np.arange(1, count - 1), (points - 2) // 2):
        values = curve.values[stretch]
        finite = np.flatnonzero(np.isfinite(values))
        if len(finite) == 0:
            kept.add(int(stretch[0]))
            continue
        kept.add(int(stretch[finite[np.argmin(values[finite])]]))
        kept.add(int(stretch[finite[np.argmax(values[finite])]]))
    at = np.array(sorted(kept))
    return Curve(
        run=curve.run, tag=curve.tag, steps=curve.steps[at], wall_times=curve.wall_times[at], values=curve.values[at]
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Several runs of one side: steps, the median of the runs there, the lowest and the highest value: float64[n]."""

    at: Floats
    centre: Floats
    low: Floats
    high: Floats


def spread(traces: Sequence[Trace], points: int) -> Spread:
    """At most `points` steps, each for a stretch that holds as many steps as any other.

    `centre` is the median of the runs' means in the stretch; `low` and `high` are those of all their values, so that no
    spike is lost. Up to `points` steps each is a stretch of its own. Values that are not finite are left out.
    """
    finite = [np.isfinite(values) & np.isfinite(steps) for steps, values in traces]
    seen = [steps[kept].astype(np.float64) for (steps, _), kept in zip(traces, finite, strict=True)]
    steps = np.unique(np.concatenate(seen)) if seen else np.empty(0)
    if not len(steps):
        return Spread(steps, steps, steps, steps)
    first = np.linspace(0, len(steps), min(points, len(steps)), endpoint=False).astype(np.int64)
    at = np.add.reduceat(steps, first) / np.diff(first, append=len(steps))
    # a curve begins and ends where its values do
    at[[0, -1]] = steps[[0, -1]]
    values = [values[kept] for (_, values), kept in zip(traces, finite, strict=True)]
    runs = [_summed(np.searchsorted(steps[first], s, "right") - 1, v, at) for s, v in zip(seen, values, strict=True)]
    centre, low, high = (np.stack(part) for part in zip(*runs, strict=True))
    return Spread(at, np.nanmedian(centre, axis=0), np.nanmin(low, axis=0), np.nanmax(high, axis=0))


def _summed(stretch: NDArray[np.int64], values: Floats, at: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, lowest and highest value of one run in each stretch, float64[n]; NaN before its first and after its last.

    `stretch` is the number of each value's stretch; where a run has no value its neighbours are joined by a line.
    """
    count = np.bincount(stretch, minlength=len(at))
    has = count > 0
    if not has.any():
        return (np.full(len(at), np.nan),) * 3
    mean = np.bincount(stretch, values, minlength=len(at))[has] / count[has]
    mean = np.interp(at, at[has], mean, left=np.nan, right=np.nan)
    low, high = np.full(len(at), np.inf), np.full(len(at), -np.inf)
    np.minimum.at(low, stretch, values)
    np.maximum.at(high, stretch, values)
    return mean, np.where(has, low, mean), np.where(has, high, mean)


# ---- where a run got to ---------------------------------------------------------------------------------------------


def value_at(curve: Curve, step: int) -> float | None:
    """The value that a run had at a step: its last one up to there. None before its first, and where that is NaN."""
    before = np.flatnonzero(curve.steps <= step)
    if not len(before):
        return None
    value = float(curve.values[before[-1]])
    return value if np.isfinite(value) else None


def reached(curve: Curve, level: float, better: Literal["higher", "lower"]) -> tuple[int, float | None] | None:
    """The first step at which a run is as good as `level`, and seconds since its first value (None if unknown).

    None when it never is; an infinity is not good.
    """
    good = curve.values >= level if better == "higher" else curve.values <= level
    where = np.flatnonzero(good & np.isfinite(curve.values))
    if not len(where):
        return None
    seconds = float(curve.wall_times[where[0]] - curve.wall_times[0])
    return int(curve.steps[where[0]]), seconds if np.isfinite(seconds) else None


def diverged_at(curve: Curve, least: int = 1) -> int | None:
    """The step from which on a run has nothing but values that are not finite, at least so many of them.

    None for one that recovered. A single NaN between numbers is what a skipped step of mixed precision looks like.
    """
    finite = np.flatnonzero(np.isfinite(curve.values))
    first = 0 if not len(finite) else int(finite[-1]) + 1
    return int(curve.steps[first]) if len(curve) - first >= max(1, least) else None
