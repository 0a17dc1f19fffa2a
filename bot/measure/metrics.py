"""What a metric is, and what is assumed where nothing is declared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from bot.measure.guesses import guess_kind, guess_lower_or_higher
from bot.measure.units import factor

Kind = Literal["accuracy", "loss", "time", "memory", "latency", "count", "other"]
Better = Literal["higher", "lower"]
Pick = Literal["last", "best", "min", "max", "median", "mean", "rate", "at", "steps to", "seconds to"]
# picks that go with a number: `at 1000` (a step), `seconds to 76` (a value)
NUMBERED: tuple[Pick, ...] = ("at", "steps to", "seconds to")
# picks whose values are not those that were written
DERIVED: tuple[Pick, ...] = ("rate", "steps to", "seconds to")
Scale = Literal["linear", "log"]
Per = Literal["seed", "machine"]
Builtin = Literal[
    "wall_seconds",
    "checkout_seconds",
    "setup_seconds",
    "inputs_seconds",
    "peak_host_memory",
    "peak_device_memory",
    "weights_count",
    "weights_size",
    "exit_status",
    "passed",
]
Missing = Literal["no_tag", "diverged", "no_points", "not_reached"]


class BuiltinFacts(NamedTuple):
    """What is certain of a built-in metric. What only the network decides has no direction until one is declared."""

    kind: Kind
    unit: str
    meaning: str
    better: Better | None = None


BUILTINS: Mapping[Builtin, BuiltinFacts] = {
    "wall_seconds": BuiltinFacts("time", "s", "seconds that the training command took", "lower"),
    "checkout_seconds": BuiltinFacts("time", "s", "seconds that the checkout of the side took"),
    "setup_seconds": BuiltinFacts("time", "s", "seconds that the setup line took, with its dependencies at hand"),
    "inputs_seconds": BuiltinFacts("time", "s", "seconds until all inputs were there and checked"),
    "peak_host_memory": BuiltinFacts("memory", "MB", "the most memory that one of its processes held", "lower"),
    "peak_device_memory": BuiltinFacts("memory", "MB", "the most memory that one device held", "lower"),
    "weights_count": BuiltinFacts("count", "", "numbers in the last checkpoint"),
    "weights_size": BuiltinFacts("count", "MB", "their bytes"),
    "exit_status": BuiltinFacts("other", "", "the exit status of the training command"),
    "passed": BuiltinFacts("other", "", "1 for a training command that ended well, 0 for one that did not", "higher"),
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
    may all stay below 1, declare the unit `%`: that one is never multiplied. `written` is the unit of the script's
    values where it is another one than `unit`.

    `number` belongs to a pick of NUMBERED: a step, or a value as the script writes it. `per_step` is what one step
    counts for when the pick is a rate: its batch size makes it examples a second.
    """

    name: str
    tag: str | None = None
    builtin: Builtin | None = None
    kind: Kind = "other"
    pick: Pick = "last"
    number: float | None = None
    per_step: float = 1.0
    better: Better | None = None
    unit: str = ""
    written: str = ""
    scale: Scale = "linear"
    tolerance: float | None = None
    noise: float | None = None
    per: Per = "seed"
    target: float | None = None
    gate: bool = False
    confirm: bool = True

    @property
    def is_derived(self) -> bool:
        """Whether its values are of another kind than those of its curve."""
        return self.pick in DERIVED

    @property
    def picked(self) -> str:
        """The pick as it is written in a configuration."""
        return self.pick if self.number is None else f"{self.pick} {self.number:g}"


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
# how long it takes to get as good as something
_TO_REACH = _Defaults("log", 0.10, 0.05, "seed", "last")
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
    of_builtin = BUILTINS[cast(Builtin, builtin)] if builtin is not None else None
    unit = cast(str, declared.get("unit", of_builtin.unit if of_builtin else ""))
    pick = cast("Pick | None", declared.get("pick"))
    if pick in DERIVED:
        unit = cast(str, declared.get("unit", _unit_of(pick, declared)))
    guessed = of_builtin.kind if of_builtin else "time" if pick in DERIVED else guess_kind(name, unit)
    kind = cast(Kind, declared.get("kind", guessed))
    if kind == "accuracy" and "unit" not in declared:
        unit = "pp"
    defaults = _TO_REACH if pick in ("steps to", "seconds to") else _DEFAULTS[kind]
    scale = _scale(name, unit, declared, defaults.scale)
    assumed_tolerance, assumed_noise = _assumed(defaults, kind, unit, scale)
    # more or fewer weights are good or bad by what the metric is called
    better = of_builtin.better if of_builtin and kind != "count" else _better(name, unit, kind, pick)
    metric = Metric(
        name=name,
        tag=cast("str | None", tag),
        builtin=cast("Builtin | None", builtin),
        kind=kind,
        pick=pick or defaults.pick,
        number=cast("float | None", declared.get("number")),
        per_step=cast(float, declared.get("per_step", 1.0)),
        better=cast("Better | None", declared.get("better", better)),
        unit=unit,
        written=cast(str, declared.get("written", "")),
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


def _unit_of(pick: Pick | None, declared: Mapping[str, object]) -> str:
    if pick == "rate":
        return "examples/s" if "per_step" in declared else "steps/s"
    return "s" if pick == "seconds to" else "steps"


def _better(name: str, unit: str, kind: Kind, pick: Pick | None) -> Better | None:
    if pick == "rate":
        return "higher"
    return "lower" if pick in DERIVED else guess_lower_or_higher(name, unit, kind)


def _refuse_contradictions(metric: Metric) -> None:
    if metric.builtin is not None and (metric.is_derived or metric.number is not None or metric.written):
        raise ValueError(
            f"{metric.name}: what is measured from outside has no curve to pick from and no unit to convert"
        )
    if (metric.pick in NUMBERED) != (metric.number is not None):
        raise ValueError(f"{metric.name}: write a number behind the pick, such as {metric.pick} 1000")
    if metric.pick != "rate" and metric.per_step != 1.0:
        raise ValueError(f"{metric.name}: per_step goes with pick: rate")
    if not metric.per_step > 0:
        raise ValueError(f"{metric.name}: per_step is more than 0")
    if metric.written:
        if metric.is_derived:
            raise ValueError(f"{metric.name}: {metric.picked} is no value that the script writes; leave written out")
        factor(metric.written, metric.unit)
    if metric.pick == "seconds to":
        factor("s", metric.unit)
    if metric.better is None:
        needs = "pick: best" if metric.pick == "best" else "a target" if metric.target is not None else ""
        needs = needs or ("a gate" if metric.gate else "")
        if needs:
            raise ValueError(f"{metric.name}: {needs} needs better: higher or better: lower")
    if metric.gate and metric.tolerance is None:
        raise ValueError(f"{metric.name}: a gate needs a tolerance: the change that you would still accept")
