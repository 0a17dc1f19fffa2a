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
    if comparison.head_centre is None:
        return _nothing(comparison)
    if comparison.base_centre is None:
        return _alone(comparison)
    if comparison.verdict == "no change":
        inside = f"{_difference(comparison)}, {_interval(comparison)}, inside {_amount(comparison)}"
        return f"{comparison.metric.name} {_values(comparison)} ({inside}); {_counts(comparison)}"
    if comparison.reason in ("failed_runs", "missing_values"):
        return _incomplete(comparison)
    if comparison.verdict in ("regression", "improvement"):
        return f"{_compared(comparison)}; {_votes(comparison)}{_base(comparison)}"
    return _undecided(comparison, gates)


def _nothing(comparison: Comparison) -> str:
    name = comparison.metric.name
    if comparison.reason == "out_of_range":
        counts = f"{len(comparison.head)} on the head and {len(comparison.base)} on the base"
        return f"the values of {name} are too large to compare: {counts}; write them in a larger unit"
    if comparison.reason == "failed_runs":
        return f"{name} has no value on the head"
    return f"no run of the head gave a value for {name}"


def _alone(comparison: Comparison) -> str:
    """Only the head has values; where the base should have had some, what would help."""
    name = comparison.metric.name
    values = f"{name} {value(comparison.metric, comparison.head_centre or 0.0)} ({_units(comparison)})"
    if comparison.verdict == "inconclusive":
        return f"{values}, nothing to compare with: see why the base failed, then run it again"
    return f"{values}, nothing to compare with"


def _compared(comparison: Comparison) -> str:
    """Values, difference, and the interval and the tolerance where there is one."""
    about = _difference(comparison)
    if comparison.interval is not None:
        about += f", {_interval(comparison)}"
    if comparison.metric.tolerance is not None:
        about += f"; tolerance {_amount(comparison)}"
    return f"{comparison.metric.name} {_values(comparison)} ({about})"


def _incomplete(comparison: Comparison) -> str:
    found = f"{_compared(comparison)} in the runs that gave a value; {_counts(comparison)}"
    again = comparison.verdict == "inconclusive"
    return f"{found}; run it again when all of them give one" if again else found


def _undecided(comparison: Comparison, gates: int) -> str:
    reason, compared, counts = comparison.reason, _compared(comparison), _counts(comparison)
    if reason == "suspected":
        votes = f"{_votes(comparison)}{_base(comparison)}"
        return f"suspected regression, {compared}; {votes}; {_doubt(comparison, gates)}; {_next(comparison)}"
    if reason == "unrepeated":
        votes = f"{_votes(comparison).removesuffix(' on one machine')}{_base(comparison)}"
        return f"suspected regression, {compared}; {votes}; on one machine only: run it again to ask another one"
    if reason == "unconfirmed":
        alone = f"{_signed(comparison, comparison.repeated or 0.0)}{_unit(comparison)}"
        second = f"the second lease alone shows {alone}; run it again with more seeds to tell"
        return f"not confirmed, {compared}; {counts}; {second}"
    if reason == "one_machine":
        return f"{compared}; {counts}; one machine alone cannot show it: repeat it on another machine"
    missing = {
        "no_direction": "no verdict without a direction: add better: higher or better: lower",
        "no_tolerance": "no verdict without a tolerance: add the change that you would still accept",
        "no_noise": f"the noise of one run is unknown: add noise, or run more {_words(comparison)}",
    }.get(reason)
    return f"{compared}; {counts}; {missing}" if missing else f"{compared}, {_too_wide(comparison)}"


def _doubt(comparison: Comparison, gates: int) -> str:
    if gates:
        return f"among {gates} gates such a difference also comes up by chance"
    if comparison.units == 1:
        return f"one {'run' if comparison.counted == 'seed' else comparison.counted} alone never accuses"
    return "too few of them agree"


def _too_wide(comparison: Comparison) -> str:
    low, high = comparison.interval or (0.0, 0.0)
    worse = low if comparison.metric.better == "higher" else high
    if low <= 0 <= high:
        doubt = f"but {_units(comparison)} cannot tell 0 from {_signed(comparison, worse)}{_unit(comparison)}"
    else:
        doubt = f"but {_units(comparison)} cannot tell whether that is within the tolerance"
    return f"{doubt}{_base(comparison)}; {_next(comparison)}"


def _next(comparison: Comparison) -> str:
    more, counted = comparison.more_runs, comparison.counted
    if more is None:
        return f"no small number of {_words(comparison)} would tell: allow a wider tolerance, or make runs less noisy"
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


def _counts(comparison: Comparison) -> str:
    return f"{_units(comparison)}{_base(comparison)}"


def _words(comparison: Comparison) -> str:
    return f"{comparison.counted}s"


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
