"""Curves as people look at them: thinned so that no extreme is lost."""

import numpy as np

from bot.measure.reading import Curve


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
