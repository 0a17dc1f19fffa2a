"""Head and base of one metric over each other, as the page draws them: plain values for JSON.

`{name, unit, better, sides, marks, goal}`. Of each side `{side, runs, at, centre, low, high, diverged}`: `at` are
steps, `centre` the median of the runs there, `low` and `high` their spread, `diverged` the steps from which on runs had
no finite value. `marks` are `{step, head, base}`: the medians of both sides at a quarter, half, three quarters and the
end of what both have trained. `goal` is `{level, of, head, base}`, where `of` is "target" or "base" and each side
`{step, seconds, runs, of}`: medians over the `runs` (of all `of`) that got there. What is unknown or not a finite
number is null.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bot.measure.curves import diverged_at, reached, spread, value_at
from bot.measure.metrics import Metric
from bot.measure.reading import Curve

POINTS = 300
QUARTERS = (0.25, 0.5, 0.75, 1.0)

Sides = Mapping[str, Sequence[Curve]]


def overlay(metric: Metric, sides: Sides) -> dict[str, Any]:
    """One metric. `sides` has the curves of the runs by "head" and "base", in the unit of the metric."""
    return {
        "name": metric.name,
        # points are percent to readers
        "unit": "%" if metric.unit == "pp" else metric.unit,
        "better": metric.better,
        "sides": [_side(name, curves) for name, curves in sides.items() if curves],
        "marks": _marks(sides),
        "goal": _goal(metric, sides),
    }


def _side(name: str, curves: Sequence[Curve]) -> dict[str, Any]:
    drawn = spread([(curve.steps, curve.values) for curve in curves], POINTS)
    columns = {"at": drawn.at, "centre": drawn.centre, "low": drawn.low, "high": drawn.high}
    return {
        "side": name,
        "runs": len(curves),
        **{key: [_plain(number) for number in column.tolist()] for key, column in columns.items()},
        "diverged": [step for curve in curves if (step := diverged_at(curve)) is not None],
    }


def _marks(sides: Sides) -> list[dict[str, Any]]:
    """Where both sides have been; with one side only, along that one."""
    ends = [max(int(curve.steps.max()) for curve in curves if len(curve)) for curves in sides.values() if any(curves)]
    steps = list(dict.fromkeys(round(min(ends) * share) for share in QUARTERS)) if ends else []
    return [{"step": step, **{name: _median_at(curves, step) for name, curves in sides.items()}} for step in steps]


def _median_at(curves: Sequence[Curve], step: int) -> float | None:
    values = [value for curve in curves if (value := value_at(curve, step)) is not None]
    return _plain(median(values)) if values else None


def _goal(metric: Metric, sides: Sides) -> dict[str, Any] | None:
    """The declared target; without one, what the base was worth at its end."""
    level, of = metric.target, "target"
    if level is None and any(sides.get("base", ())):
        level, of = (
            _median_at(sides["base"], max(int(curve.steps.max()) for curve in sides["base"] if len(curve))),
            "base",
        )
    if level is None or metric.better is None:
        return None
    return {"level": level, "of": of, **{name: _arrival(metric, curves, level) for name, curves in sides.items()}}


def _arrival(metric: Metric, curves: Sequence[Curve], level: float) -> dict[str, Any] | None:
    if metric.better is None or not curves:
        return None
    there = [found for curve in curves if (found := reached(curve, level, metric.better)) is not None]
    seconds = [s for _, s in there if s is not None]
    return {
        "step": median(step for step, _ in there) if there else None,
        "seconds": _plain(median(seconds)) if seconds else None,
        "runs": len(there),
        "of": len(curves),
    }


def _plain(number: float) -> float | None:
    return number if math.isfinite(number) else None
