"""What a metric is, what is assumed where nothing is declared, and the one value that a run gives for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal, cast

import numpy as np

from bot.measure.guesses import guess_kind, guess_lower_or_higher
from bot.measure.reading import ROOT, Curve, Reading

Kind = Literal["accuracy", "loss", "time", "memory", "latency", "count", "other"]
Better = Literal["higher", "lower"]
Pick = Literal["last", "best", "min", "max", "median", "mean"]
Scale = Literal["linear", "log"]
Per = Literal["seed", "machine"]
Builtin = Literal["wall_seconds"]
Missing = Literal["no_tag", "diverged", "no_points"]

BUILTINS: Mapping[str, tuple[Kind, str, str]] = {
    # name: kind, unit, what it is
    "wall_seconds": ("time", "s", "seconds that the training command took"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A tolerance or noise as written: `5%` is (5.0, percent), `0.5` is (0.5, in the unit of the metric)."""

    value: float
    percent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A named quantity. Exactly one of `tag` and `builtin` is set.

    `tolerance` and `noise` (the standard deviation of one independent measurement) are in `unit` when the scale is
    linear and fractions (0.05) when it is log; None is unknown. `per` says what one independent measurement is.

    Unit `pp`: values are kept in percent points. A run that wrote this tag as fractions (every finite value of the
    curve lies within 0..1) is multiplied by 100, any other is taken as it is. Where values are in percent already and
    may all stay below 1, declare the unit `%`: that one is never multiplied.
    """

    name: str
    tag: str | None = None
    builtin: Builtin | None = None
    kind: Kind = "other"
    pick: Pick = "last"
    better: Better | None = None
    unit: str = ""
    scale: Scale = "linear"
    tolerance: float | None = None
    noise: float | None = None
    per: Per = "seed"
    target: float | None = None
    gate: bool = False
    confirm: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value of one run, in the unit of its metric. `pair` numbers the head and base runs that belong together."""

    value: float
    seed: int
    machine: str
    commit: str
    pair: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The value of a metric in one run, or why there is none. `step` is where it stands, None for a median or mean."""

    value: float | None
    reason: Missing | None = None
    step: int | None = None
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class _Defaults:
    scale: Scale
    tolerance: float | None
    noise: float | None
    per: Per
    pick: Pick


_DEFAULTS: Mapping[Kind, _Defaults] = {
    "accuracy": _Defaults("linear", 0.5, 0.3, "seed", "last"),
    "loss": _Defaults("log", 0.02, 0.02, "seed", "last"),
    "time": _Defaults("log", 0.05, 0.03, "machine", "median"),
    "memory": _Defaults("log", 0.02, 0.005, "seed", "max"),
    "latency": _Defaults("log", 0.05, 0.03, "machine", "median"),
    "count": _Defaults("log", 0.001, 0.0, "seed", "last"),
    "other": _Defaults("linear", None, None, "seed", "last"),
}
_POINTS = ("pp", "%")  # units in which the accuracy defaults are written
_FRACTIONS = ("", "1", "fraction")


def complete(name: str, declared: Mapping[str, object]) -> Metric:
    """A metric with everything filled in that was not declared.

    `declared` holds checked values under the keys of `Metric`, `tolerance` and `noise` as `Amount`. The kind is guessed
    from unit and name; a direction is assumed only where it is certain. Accuracy without a unit is in `pp`. An amount
    in percent makes the scale log, one in the metric's unit makes it linear, unless the scale is declared.
    Raises ValueError with a plain sentence when the declarations contradict each other.
    """
    tag, builtin = declared.get("tag"), declared.get("builtin")
    if (tag is None) == (builtin is None):
        raise ValueError(f"{name}: say either tag (what the script writes) or builtin (what the agent measures)")
    of_builtin = BUILTINS[cast(str, builtin)] if builtin is not None else None
    unit = cast(str, declared.get("unit", of_builtin[1] if of_builtin else ""))
    guessed = of_builtin[0] if of_builtin else guess_kind(name, unit)
    kind = cast(Kind, declared.get("kind", guessed))
    if kind == "accuracy" and "unit" not in declared:
        unit = "pp"
    defaults = _DEFAULTS[kind]
    scale = _scale(name, unit, declared, defaults.scale)
    assumed_tolerance, assumed_noise = _assumed(defaults, kind, unit, scale)
    metric = Metric(
        name=name,
        tag=cast("str | None", tag),
        builtin=cast("Builtin | None", builtin),
        kind=kind,
        pick=cast(Pick, declared.get("pick", defaults.pick)),
        better=cast("Better | None", declared.get("better", guess_lower_or_higher(name, unit, kind))),
        unit=unit,
        scale=scale,
        tolerance=_amount(declared.get("tolerance"), assumed_tolerance),
        noise=_amount(declared.get("noise"), assumed_noise),
        per=cast(Per, declared.get("per", defaults.per)),
        target=cast("float | None", declared.get("target")),
        gate=bool(declared.get("gate", False)),
        confirm=bool(declared.get("confirm", True)),
    )
    _refuse_contradictions(metric)
    return metric


def _scale(name: str, unit: str, declared: Mapping[str, object], default: Scale) -> Scale:
    amounts = {key: cast(Amount, declared[key]) for key in ("tolerance", "noise") if declared.get(key) is not None}
    negative = [key for key, amount in amounts.items() if not amount.value >= 0]
    if negative:
        raise ValueError(f"{name}: {negative[0]} cannot be less than 0")
    relative = [key for key, amount in amounts.items() if amount.percent and amount.value]
    absolute = [key for key, amount in amounts.items() if not amount.percent and amount.value]
    if relative and absolute:
        raise ValueError(f"{name}: write tolerance and noise both in percent or both in the metric's own unit")
    scale = declared.get("scale")
    if relative and unit in _POINTS and scale is None:
        example = f"{amounts[relative[0]].value:g}"
        raise ValueError(
            f"{name} is in {unit}: write {relative[0]}: {example} for points, or add scale: log for a relative change"
        )
    if relative and scale == "linear":
        raise ValueError(f"{name}: on a linear scale {relative[0]} is in the metric's own unit, without %")
    if absolute and scale == "log":
        raise ValueError(f"{name}: on a log scale {absolute[0]} is a relative change: write it with %")
    if scale is not None:
        return cast(Scale, scale)
    return "log" if relative else "linear" if absolute else default


def _assumed(defaults: _Defaults, kind: Kind, unit: str, scale: Scale) -> tuple[float | None, float | None]:
    """Tolerance and noise of the kind, None where they are written for another scale or unit."""
    if scale != defaults.scale or defaults.tolerance is None or defaults.noise is None:
        return None, None
    if kind == "accuracy" and unit not in _POINTS:
        return (defaults.tolerance / 100, defaults.noise / 100) if unit in _FRACTIONS else (None, None)
    return defaults.tolerance, defaults.noise


def _amount(declared: object, assumed: float | None) -> float | None:
    if not isinstance(declared, Amount):
        return assumed
    return declared.value / 100 if declared.percent else declared.value


def _refuse_contradictions(metric: Metric) -> None:
    if metric.better is None:
        needs = "pick: best" if metric.pick == "best" else "a target" if metric.target is not None else ""
        needs = needs or ("a gate" if metric.gate else "")
        if needs:
            raise ValueError(f"{metric.name}: {needs} needs better: higher or better: lower")
    if metric.gate and metric.tolerance is None:
        raise ValueError(f"{metric.name}: a gate needs a tolerance: the change that you would still accept")


# ---- the value of one run -----------------------------------------------------------------------------------------


def measured(metric: Metric, reading: Reading, builtins: Mapping[str, float]) -> Measurement:
    """The metric's value in one run; `builtins` holds what the agent measured, by name.

    The tag is looked up as it stands and as `run/tag` (`validation/epoch_acc` is tag `epoch_acc` of the directory
    `validation`). A match in the log folder itself wins; otherwise there must be only one, or several that hold the
    same steps and values. `last` looks at the last value only; every other pick looks at all, and one that is NaN or
    infinite among them means the run diverged.
    """
    if metric.builtin is not None:
        return _built_in(metric.builtin, builtins)
    tag = metric.tag or ""
    found = _curves(tag, reading)
    if not found:
        return Measurement(value=None, reason="no_tag", sentence=_not_found(tag, reading))
    if len(found) > 1 and not all(_equal(found[0], other) for other in found[1:]):
        names = ", ".join(_quoted(curve.path) for curve in found[:5])
        sentence = f"The tag {_quoted(tag)} was written to several places: name one of {names}."
        return Measurement(value=None, reason="no_tag", sentence=sentence)
    if len(found[0]) == 0:
        return Measurement(value=None, reason="no_points", sentence=f"The tag {_quoted(tag)} holds no values.")
    return _picked(metric, found[0])


def _built_in(name: Builtin, builtins: Mapping[str, float]) -> Measurement:
    value = builtins.get(name)
    if value is None or not np.isfinite(value):
        return Measurement(value=None, reason="no_points", sentence=f"{name} was not measured in this run.")
    return Measurement(value=float(value), sentence=f"{BUILTINS[name][2]}: {value:g} {BUILTINS[name][1]}")


def find_curve(metric: Metric, reading: Reading) -> Curve | None:
    """The curve that the metric is picked from; None for built-in ones and where there is none."""
    found = _curves(metric.tag, reading) if metric.tag else []
    return found[0] if found else None


def _curves(tag: str, reading: Reading) -> list[Curve]:
    at_root = reading.curves.get((ROOT, tag))
    if at_root is not None:
        return [at_root]
    return [curve for _, curve in sorted(reading.curves.items()) if tag in (curve.tag, curve.path)]


def _equal(one: Curve, other: Curve) -> bool:
    """Whether two writers wrote the same, as the processes of one distributed training do."""
    return np.array_equal(one.steps, other.steps) and np.array_equal(one.values, other.values, equal_nan=True)


def _not_found(tag: str, reading: Reading) -> str:
    names = sorted({curve.path for curve in reading.curves.values()})[:2000]
    if not names:
        return f"The tag {_quoted(tag)} was not found: the log folder holds no scalars at all."
    near = get_close_matches(tag, [name[:100] for name in names], n=3, cutoff=0.5)
    listed = ", ".join(_quoted(name) for name in near or names[:5])
    more = "" if near or len(names) <= 5 else f" and {len(names) - 5} more"
    return f"The tag {_quoted(tag)} was not found; {'nearest' if near else 'there are'}: {listed}{more}."


def in_unit(metric: Metric, curve: Curve) -> Curve:
    """The curve in the unit of the metric: points, where the run wrote fractions."""
    if metric.unit == "pp" and _are_fractions(curve.values):
        return replace(curve, values=curve.values * 100.0)
    return curve


def _picked(metric: Metric, curve: Curve) -> Measurement:
    values = curve.values
    considered = values[-1:] if metric.pick == "last" else values
    wrong = np.flatnonzero(~np.isfinite(considered))
    if len(wrong):
        at = len(values) - len(considered) + int(wrong[0])
        sentence = f"{_quoted(curve.path)} is {values[at]} at step {curve.steps[at]}: the training diverged."
        return Measurement(value=None, reason="diverged", step=int(curve.steps[at]), sentence=sentence)
    value, at_index = _pick(metric, values)
    step = None if at_index is None else int(curve.steps[at_index])
    factor = 100.0 if metric.unit == "pp" and _are_fractions(values) else 1.0
    where = "" if step is None else f" at step {step}"
    sentence = f"{value * factor:g} ({metric.pick} of {len(values)} values of {_quoted(curve.path)}{where})"
    return Measurement(value=value * factor, step=step, sentence=sentence)


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
