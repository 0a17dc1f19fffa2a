"""A comparison's quantities as plain text: values with units, the difference with its interval, the tolerance."""

import math

from bot.measure.metrics import Metric
from bot.measure.verdict import Comparison
from bot.report.text import plain, shorten
from bot.report.values import counted, decimals_for, decimals_of_difference, number, signed

NOTHING = "—"
_ARROWS = {"higher": "↑", "lower": "↓"}


def arrow(metric: Metric) -> str:
    """Which direction is better: ↑, ↓, or nothing when it is not known."""
    return _ARROWS.get(metric.better or "", "")


def base_value(comparison: Comparison) -> str:
    """The centre of the base with its unit."""
    return _value(comparison, comparison.base_centre)


def head_value(comparison: Comparison) -> str:
    """The centre of the head with its unit."""
    return _value(comparison, comparison.head_centre)


def change(comparison: Comparison) -> str:
    """`−1.3 pp (−1.9 to −0.7)`: in percent for metrics that are compared by ratio, else in the metric's unit."""
    difference = comparison.difference
    if difference is None or math.isnan(difference):
        return NOTHING
    relative = comparison.scale == "log"
    unit = "%" if relative else _points(comparison.metric)
    factor = 100 if relative else 1
    interval = comparison.interval or ()
    decimals = decimals_of_difference((difference * factor, *(end * factor for end in interval)))
    text = f"{signed(difference * factor, decimals)} {unit}".rstrip()
    if not interval:
        return text
    low, high = (signed(end * factor, decimals) for end in interval)
    return f"{text} ({low} to {high})"


def tolerance(metric: Metric) -> str:
    """`0.5 pp`, `5 %`; nothing when there is none."""
    return _amount(metric.tolerance, metric)


def noise(comparison: Comparison) -> str:
    """What one independent measurement varies by, as it was learned or declared; nothing when it is not known."""
    metric, learned = comparison.metric, comparison.prior
    if learned is None:
        return _amount(metric.noise, metric)
    return f"{_amount(float(f'{learned.noise:.2g}'), metric)} (learned)"


def spread(comparison: Comparison) -> str:
    """What stands behind the comparison: `2 pairs`, or `3 vs 20 seeds` of head and base."""
    if comparison.counted == "pair":
        return counted(comparison.units, "pair")
    return f"{comparison.units} vs {counted(comparison.base_units, comparison.counted)}"


def level(comparison: Comparison) -> str:
    """The level of the interval: `99 %`."""
    return f"{comparison.level} %"


def _amount(amount: float | None, metric: Metric) -> str:
    if amount is None:
        return NOTHING
    if metric.scale == "log":
        return f"{number(amount * 100)} %"
    return f"{number(amount)} {_points(metric)}".rstrip()


def _points(metric: Metric) -> str:
    """The unit of a difference: two values in percent differ by points."""
    return "pp" if metric.unit == "%" else _unit(metric)


def _unit(metric: Metric) -> str:
    return shorten(plain(metric.unit), characters=16)


def _value(comparison: Comparison, centre: float | None) -> str:
    if centre is None:
        return NOTHING
    unit = "%" if comparison.metric.unit == "pp" else _unit(comparison.metric)
    sizes = [value for value in (comparison.head_centre, comparison.base_centre) if value is not None]
    apart = sizes[0] - sizes[1] if len(sizes) == 2 else None
    return f"{number(centre, decimals_for(sizes, apart))} {unit}".rstrip()
