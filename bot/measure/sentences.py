"""The one line about a comparison for the maintainer: values, difference, interval, tolerance, counts, next step."""

import math
from collections.abc import Sequence

from bot.measure.comparison import Comparison
from bot.measure.metrics import Metric, Sample

_POINTS = ("pp", "%")
_PLACES = {"seed": "", "machine": "", "pair": "interleaved "}


def say(comparison: Comparison, gates: int = 0) -> str:
    """The sentence of a comparison; `gates` is their number when that alone speaks against a regression."""
    parts = [f"{comparison.verdict}: {_finding(comparison, gates)}", _target(comparison), _failures(comparison)]
    return "; ".join(part for part in parts if part)


def _finding(comparison: Comparison, gates: int) -> str:
    name = comparison.metric.name
    if comparison.head_centre is None:
        return _nothing(comparison)
    if comparison.base_centre is None:
        values = f"{name} {value(comparison.metric, comparison.head_centre)} ({_units(comparison)})"
        return f"{values}, nothing to compare with"
    if comparison.verdict == "no change" or (comparison.verdict == "inconclusive" and comparison.reason == ""):
        return _unchanged(comparison)
    if comparison.reason in ("failed_runs", "missing_values"):
        return f"{_compared(comparison)} in the runs that gave a value"
    if comparison.verdict in ("regression", "improvement"):
        return f"{_changed(comparison)}; {_votes(comparison)}{_base(comparison)}"
    return _undecided(comparison, gates)


def _nothing(comparison: Comparison) -> str:
    name = comparison.metric.name
    if comparison.reason == "out_of_range":
        return f"the values of {name} are too large to compare"
    if comparison.reason == "failed_runs":
        return f"{name} has no value on the head"
    return f"no run of the head gave a value for {name}"


def _changed(comparison: Comparison) -> str:
    metric = comparison.metric
    both = _values(comparison)
    return f"{metric.name} {both} ({_difference(comparison)}, {_interval(comparison)}; {_tolerance(comparison)})"


def _compared(comparison: Comparison) -> str:
    return f"{comparison.metric.name} {_values(comparison)} ({_difference(comparison)})"


def _unchanged(comparison: Comparison) -> str:
    inside = f"{_difference(comparison)}, {_interval(comparison)}, inside {_amount(comparison)}"
    counts = f"{_units(comparison)}{_base(comparison)}"
    return f"{comparison.metric.name} {_values(comparison)} ({inside}); {counts}"


def _undecided(comparison: Comparison, gates: int) -> str:
    reason = comparison.reason
    if reason == "suspected":
        why = (
            f"among {gates} gates such a difference also comes up by chance"
            if gates
            else "one run alone never accuses"
            if comparison.units == 1
            else f"only {_votes(comparison)} by the tolerance"
        )
        return f"suspected regression, {_changed(comparison)}; {why}; {_next(comparison)}"
    if reason == "unrepeated":
        return f"suspected regression, {_changed(comparison)}; {_votes(comparison)}, on one machine only"
    if reason == "unconfirmed":
        alone = f"{_signed(comparison, comparison.repeated or 0.0)}{_unit(comparison)}"
        return f"not confirmed, {_changed(comparison)}; the second lease alone shows {alone}"
    if reason == "one_machine":
        return f"{_changed(comparison)}, but one machine alone cannot show it; repeat it on another machine"
    missing = {
        "no_direction": "no verdict without a direction: add better: higher or better: lower",
        "no_tolerance": "no verdict without a tolerance: add the change that you would still accept",
        "no_noise": "the noise of one run is unknown: add noise, or run more seeds",
    }.get(reason)
    return f"{_compared(comparison)}, {missing}" if missing else _too_wide(comparison)


def _too_wide(comparison: Comparison) -> str:
    low, high = comparison.interval or (0.0, 0.0)
    worse = low if comparison.metric.better == "higher" else high
    if low <= 0 <= high:
        doubt = f"but {_units(comparison)} cannot tell 0 from {_signed(comparison, worse)}{_unit(comparison)}"
    else:
        doubt = f"but {_units(comparison)} cannot tell whether that is within the tolerance"
    return f"{_changed(comparison)}, {doubt}; {_next(comparison)}"


def _next(comparison: Comparison) -> str:
    more, counted = comparison.more_runs, comparison.counted
    if more is None:
        return "no small number of runs would tell"
    what = f"{more} more {counted}{'' if more == 1 else 's'} can tell"
    option = {"seed": "seeds", "pair": "pairs"}.get(counted)
    return f"{what} ({option}={comparison.units + more})" if option else what


def _target(comparison: Comparison) -> str:
    metric = comparison.metric
    if not comparison.target or metric.target is None:
        return ""
    state = {"holds": "holds", "missed": "is missed", "open": "is not settled"}[comparison.target]
    return f"the target {value(metric, metric.target)} {state}"


def _failures(comparison: Comparison) -> str:
    said = []
    sides = (
        ("head", comparison.failed_head, comparison.missing_head, comparison.head),
        ("base", comparison.failed_base, comparison.missing_base, comparison.base),
    )
    for side, failed, missing, samples in sides:
        total = failed + missing + len(samples)
        if failed:
            said.append(f"{failed} of {total} {side} runs failed or diverged")
        if missing:
            said.append(f"{missing} of {total} {side} runs did not write it")
    return "; ".join(said)


# ---- counts -------------------------------------------------------------------------------------------------------


def _units(comparison: Comparison) -> str:
    count, counted = comparison.units, comparison.counted
    text = f"{count} {_PLACES[counted]}{counted}{'' if count == 1 else 's'}"
    return f"{text} {_where(comparison)}" if counted == "pair" else text


def _votes(comparison: Comparison) -> str:
    better = comparison.verdict == "improvement"
    votes = comparison.better_runs if better else comparison.worse_runs
    count, counted = comparison.units, comparison.counted
    text = (
        f"{votes} of {count} {_PLACES[counted]}{counted}{'' if count == 1 else 's'} {'better' if better else 'worse'}"
    )
    return f"{text} {_where(comparison)}" if counted == "pair" else text


def _where(comparison: Comparison) -> str:
    leases = len({sample.machine for sample in comparison.head})
    # which may have been held on the same host
    return "on one machine" if leases == 1 else f"in {leases} leases"


def _base(comparison: Comparison) -> str:
    """How many base measurements there were and from which commit on; pairs bring their own."""
    if comparison.counted == "pair":
        return ""
    count = comparison.base_units
    what = "base machine" if comparison.counted == "machine" else "base run"
    return f"; {count} {what}{'' if count == 1 else 's'} {_commits(comparison.base)}".rstrip()


def _commits(samples: Sequence[Sample]) -> str:
    first = samples[0].commit
    if not first:
        return ""
    return f"{'of' if all(sample.commit == first for sample in samples) else 'since'} {first[:7]}"


# ---- numbers ------------------------------------------------------------------------------------------------------


def value(metric: Metric, number: float) -> str:
    """A value with its unit: 76.4 %, 0.01234 s, 1013."""
    if metric.unit in _POINTS:
        return f"{_fixed(number, _decimals(metric, relative=False))} %"
    return f"{_significant(number)} {metric.unit}".rstrip()


def _values(comparison: Comparison) -> str:
    head, base = comparison.head_centre, comparison.base_centre
    return f"{value(comparison.metric, head or 0.0)} vs {value(comparison.metric, base or 0.0)}"


def _difference(comparison: Comparison) -> str:
    text = f"{_signed(comparison, comparison.difference or 0.0)}{_unit(comparison)}"
    absolute_only = comparison.metric.scale == "log" and comparison.scale == "linear"
    return f"{text}, relative n/a" if absolute_only else text


def _interval(comparison: Comparison) -> str:
    low, high = comparison.interval or (0.0, 0.0)
    return f"{comparison.level} % interval {_signed(comparison, low)} to {_signed(comparison, high)}"


def _tolerance(comparison: Comparison) -> str:
    return f"tolerance {_amount(comparison)}"


def _amount(comparison: Comparison) -> str:
    tolerance = comparison.metric.tolerance or 0.0
    if comparison.metric.scale == "log":
        return f"{100 * tolerance:g} %"
    return f"{tolerance:g}{_unit(comparison)}"


def _unit(comparison: Comparison) -> str:
    if comparison.scale == "log":
        return " %"
    unit = "pp" if comparison.metric.unit == "%" else comparison.metric.unit
    return f" {unit}" if unit else ""


def _signed(comparison: Comparison, number: float) -> str:
    metric = comparison.metric
    if comparison.scale == "log":
        text = _fixed(100 * number, _decimals(metric, relative=True))
    elif metric.tolerance and metric.scale == "linear":
        text = _fixed(number, _decimals(metric, relative=False))
    else:
        text = _significant(number)
    return text if text.startswith("-") or not text.strip("0.") else f"+{text}"


def _decimals(metric: Metric, *, relative: bool) -> int:
    """As many as show the tolerance; at least one for percentages."""
    least = 1 if relative or metric.unit in _POINTS else 0
    tolerance = (metric.tolerance or 0.0) * (100 if relative else 1)
    if tolerance <= 0:
        return max(least, 1)
    return min(9, max(least, -math.floor(math.log10(tolerance))))


def _fixed(number: float, decimals: int) -> str:
    if abs(number) >= 1e9:
        return f"{number:.3e}"
    text = f"{number:.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def _significant(number: float) -> str:
    """Four digits that count, without an exponent where that can be read."""
    if number == 0:
        return "0"
    size = math.floor(math.log10(abs(number)))
    if not -5 <= size <= 8:
        return f"{number:.3e}"
    text = f"{number:.{max(0, 3 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
