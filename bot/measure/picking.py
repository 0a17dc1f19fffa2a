"""The one value that a run gives for a metric."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

import numpy as np

from bot.measure.curves import reached
from bot.measure.guesses import guess_kind, guess_lower_or_higher
from bot.measure.metrics import Better, Measurement, Metric
from bot.measure.outside import built_in
from bot.measure.patterns import are_one, fitting
from bot.measure.reading import ROOT, Curve, Reading
from bot.measure.units import factor


def measured(metric: Metric, reading: Reading, builtins: Mapping[str, float | str]) -> Measurement:
    """The metric's value in one run; `builtins` is what `outside.known` says.

    The tag is looked up as it stands and as `run/tag` (`validation/epoch_acc` is tag `epoch_acc` of the directory
    `validation`). A match in the log folder itself wins; otherwise there must be only one, or several that hold the
    same steps and values. A tag with `*` is a pattern for both forms, in which `*` stands for anything; where it leaves
    several curves, `patterns.expand` makes a metric of each first. `last` looks at the last value only, `rate` and the
    picks with a number at what they need; every other pick looks at all, and one that is NaN or infinite among them
    means the run diverged.
    """
    if metric.builtin is not None:
        return built_in(metric.builtin, builtins)
    tag = metric.tag or ""
    found = _curves(tag, reading)
    if not found:
        return Measurement(value=None, reason="no_tag", sentence=_not_found(tag, reading))
    if not are_one(found):
        names = ", ".join(_quoted(curve.path) for curve in found[:5])
        sentence = f"The tag {_quoted(tag)} was written to several places: name one of {names}."
        return Measurement(value=None, reason="no_tag", sentence=sentence)
    if len(found[0]) == 0:
        return Measurement(value=None, reason="no_points", sentence=f"The tag {_quoted(tag)} holds no values.")
    return _picked(metric, found[0])


def find_curve(metric: Metric, reading: Reading) -> Curve | None:
    """The curve that the metric is picked from; None for built-in ones and where there is none."""
    found = _curves(metric.tag, reading) if metric.tag else []
    return found[0] if found else None


def _curves(tag: str, reading: Reading) -> list[Curve]:
    at_root = reading.curves.get((ROOT, tag))
    return [at_root] if at_root is not None else fitting(tag, reading)


def _not_found(tag: str, reading: Reading) -> str:
    names = sorted({curve.path for curve in reading.curves.values()})[:2000]
    if not names:
        return f"The tag {_quoted(tag)} was not found: the log folder holds no scalars at all."
    near = get_close_matches(tag, [name[:100] for name in names], n=3, cutoff=0.5)
    listed = ", ".join(_quoted(name) for name in near or names[:5])
    more = "" if near or len(names) <= 5 else f" and {len(names) - 5} more"
    return f"The tag {_quoted(tag)} was not found; {'nearest' if near else 'there are'}: {listed}{more}."


def in_unit(metric: Metric, curve: Curve) -> Curve:
    """The curve in the unit of the metric: as it is written, or points where the run wrote fractions."""
    times = _factor(metric, curve)
    return curve if times == 1.0 else replace(curve, values=curve.values * times)


def _factor(metric: Metric, curve: Curve) -> float:
    if metric.written:
        return factor(metric.written, metric.unit)
    return 100.0 if metric.unit == "pp" and _are_fractions(curve.values) else 1.0


def _picked(metric: Metric, curve: Curve) -> Measurement:
    if metric.is_derived:
        return _derived(metric, curve)
    values = curve.values
    considered, first = values, 0
    if metric.pick == "last":
        considered, first = values[-1:], len(values) - 1
    elif metric.pick == "at":
        there = _place_of(curve, metric.number or 0.0)
        if there is None:
            sentence = f"{_quoted(curve.path)} ends at step {curve.steps.max()}, before step {metric.number:g}."
            return Measurement(value=None, reason="not_reached", sentence=sentence)
        considered, first = values[there : there + 1], there
    wrong = np.flatnonzero(~np.isfinite(considered))
    if len(wrong):
        at = first + int(wrong[0])
        sentence = f"{_quoted(curve.path)} is {values[at]} at step {curve.steps[at]}: the training diverged."
        return Measurement(value=None, reason="diverged", step=int(curve.steps[at]), sentence=sentence)
    value, at_index = (float(considered[0]), first) if metric.pick == "at" else _pick(metric, values)
    step = None if at_index is None else int(curve.steps[at_index])
    value *= _factor(metric, curve)
    where = "" if step is None else f" at step {step}"
    sentence = f"{value:g} ({metric.picked} of {len(values)} values of {_quoted(curve.path)}{where})"
    return Measurement(value=value, step=step, sentence=sentence)


def _place_of(curve: Curve, step: float) -> int | None:
    """The last value up to a step, None for a run that has not come so far."""
    before = np.flatnonzero(curve.steps <= step)
    return int(before[-1]) if len(before) and curve.steps.max() >= step else None


def _derived(metric: Metric, curve: Curve) -> Measurement:
    """How fast steps went, or how long it took to get as good as a value."""
    name = _quoted(curve.path)
    if metric.pick == "rate":
        seconds = float(curve.wall_times[-1] - curve.wall_times[0])
        steps = int(curve.steps[-1]) - int(curve.steps[0])
        if not seconds > 0 or steps <= 0:
            sentence = f"{name} tells no rate: it needs two values whose steps and times grow."
            return Measurement(value=None, reason="no_points", sentence=sentence)
        value = steps * metric.per_step / seconds
        return Measurement(value=value, sentence=f"{value:g} ({steps} steps of {name} in {seconds:g} s)")
    return _arrival(metric, curve, metric.number or 0.0)


def _arrival(metric: Metric, curve: Curve, level: float) -> Measurement:
    name = _quoted(curve.path)
    toward = _toward(curve, level)
    there = reached(curve, level, toward)
    if there is None:
        finite = curve.values[np.isfinite(curve.values)]
        best = f"came to {finite.max() if toward == 'higher' else finite.min():g}" if len(finite) else "has no value"
        return Measurement(value=None, reason="not_reached", sentence=f"{name} never reached {level:g}: it {best}.")
    step, seconds = there
    if metric.pick == "steps to":
        return Measurement(value=float(step), step=step, sentence=f"{name} reached {level:g} at step {step}")
    if seconds is None:
        sentence = f"{name} reached {level:g} at step {step}, but its values have no times."
        return Measurement(value=None, reason="no_points", step=step, sentence=sentence)
    value = seconds * factor("s", metric.unit)
    return Measurement(value=value, step=step, sentence=f"{name} reached {level:g} after {seconds:g} s, at step {step}")


def _toward(curve: Curve, level: float) -> Better:
    """Whether the curve has to rise or to fall to a level: by its name, else by where it begins."""
    known = guess_lower_or_higher(curve.tag, "", guess_kind(curve.tag, ""))
    finite = curve.values[np.isfinite(curve.values)]
    return known or ("higher" if len(finite) and finite[0] < level else "lower")


def _pick(metric: Metric, values: np.ndarray) -> tuple[float, int | None]:
    if metric.pick == "median":
        return float(np.median(values)), None
    if metric.pick == "mean":
        # divided first: the sum of large values may be too large
        return float(np.sum(values / len(values))), None
    if metric.pick == "last":
        return float(values[-1]), len(values) - 1
    highest = metric.pick == "max" or (metric.pick == "best" and metric.better == "higher")
    at = int(np.argmax(values) if highest else np.argmin(values))
    return float(values[at]), at


def _are_fractions(values: np.ndarray) -> bool:
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and bool(np.all((finite >= 0) & (finite <= 1)))


def _quoted(name: str) -> str:
    return f"`{name if len(name) <= 100 else name[:99] + '…'}`"
