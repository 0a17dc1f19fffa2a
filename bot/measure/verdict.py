"""Whether head differs from base: the rule, the correction over a whole report, and the worst of several verdicts.

A change must be larger than the tolerance, surely not noise, and seen in most of at least two measurements. No change
must be proven. Everything else is inconclusive, and runs that failed are never taken for good news.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from bot.measure import estimate
from bot.measure.comparison import Comparison, Counted, Evidence, TargetState, Verdict, Why
from bot.measure.estimate import Estimate, Values
from bot.measure.metrics import Metric, Sample, Scale
from bot.measure.noise import Prior
from bot.measure.sentences import say

__all__ = ["Comparison", "Evidence", "Verdict", "judge", "judge_report", "overall"]

ORDER: tuple[Verdict, ...] = (
    "failed",
    "not measured",
    "regression",
    "inconclusive",
    "improvement",
    "no change",
    "new",
    "passed",
)
_GREEN = ("improvement", "no change")


def judge(evidence: Evidence) -> Comparison:
    """The verdict of one metric on its own, with the numbers behind it and the sentence for people."""
    evidence = _without_broken_values(evidence)
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            comparison = _compare(evidence) if evidence.head else _blank(evidence, "not measured", "missing_values")
        except OverflowError:
            comparison = _blank(evidence, "inconclusive", "out_of_range")
        if not _finite(comparison):
            comparison = _blank(evidence, "inconclusive", "out_of_range")
        comparison = _count_failures(comparison, evidence)
    return replace(comparison, sentence=say(comparison))


def _finite(comparison: Comparison) -> bool:
    centres = (comparison.head_centre, comparison.base_centre, comparison.difference, comparison.p)
    return all(number is None or math.isfinite(number) for number in (*centres, *(comparison.interval or ())))


def judge_report(comparisons: Iterable[Comparison], q: float = 0.05) -> tuple[Comparison, ...]:
    """The comparisons of one report, its gates corrected for their number (Benjamini-Hochberg at `q`).

    A regression of a gate that could be one of the false alarms which so many gates give is shown as suspected.
    """
    judged = tuple(comparisons)
    gates = [comparison.p for comparison in judged if comparison.metric.gate and comparison.p is not None]
    cut = _cut(gates, q)
    return tuple(_corrected(comparison, cut, len(gates)) for comparison in judged)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts; nothing at all is not measured."""
    return min(verdicts, key=ORDER.index, default="not measured")


def _cut(p_values: Sequence[float], q: float) -> float:
    ranked = sorted(p_values)
    passed = [p for rank, p in enumerate(ranked, 1) if p <= q * rank / len(ranked)]
    return passed[-1] if passed else -1.0


def _corrected(comparison: Comparison, cut: float, gates: int) -> Comparison:
    p = comparison.p
    if comparison.verdict != "regression" or not comparison.metric.gate or p is None or p <= cut:
        return comparison
    corrected = replace(comparison, verdict="inconclusive", reason="suspected", more_runs=1)
    return replace(corrected, sentence=say(corrected, gates=gates))


# ---- how the values are compared ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Units:
    """Independent values of both sides; in pairs, the i-th of each belong together."""

    head: list[float]
    base: list[float]
    counted: Counted


@dataclass(frozen=True, slots=True)
class _Frame:
    """How values are turned so that + is worse, with tolerance and noise in the same numbers."""

    scale: Scale
    sign: int
    tolerance: float | None
    noise: float | None
    learned: Prior | None = None  # in place of the declared noise

    @property
    def weight(self) -> float:
        return self.learned.weight if self.learned else estimate.PRIOR_WEIGHT

    def turn(self, values: Sequence[float]) -> Values:
        array = np.asarray(values, dtype=np.float64)
        return self.sign * (np.log(array) if self.scale == "log" else array)

    def value(self, turned: float) -> float:
        return math.exp(self.sign * turned) if self.scale == "log" else self.sign * turned

    def difference(self, harm: float) -> float:
        # capped where the fraction would not be a number any more
        return math.expm1(min(self.sign * harm, 700.0)) if self.scale == "log" else self.sign * harm


def _compare(evidence: Evidence) -> Comparison:
    metric = evidence.metric
    if not evidence.base:
        return _head_alone(evidence)
    units = _units(evidence)
    robust, paired = metric.per == "machine", units.counted == "pair"
    frame = _learned(_frame(metric, units), evidence, units)
    head, base = frame.turn(units.head), frame.turn(units.base)
    if paired:
        found = estimate.of_pairs(head - base, frame.noise)
        base_centre = estimate.centre(base, robust=True)
    else:
        found = estimate.of_sides(head, base, frame.noise, robust=robust, weight=frame.weight)
        base_centre = estimate.base_centre(base)
    head_centre = estimate.centre(head, robust=robust)
    harm = found.harm if found else head_centre - base_centre
    if not all(math.isfinite(number) for number in (harm, found.half(0.995) if found else 0.0)):
        return _blank(evidence, "inconclusive", "out_of_range")
    verdict, reason = _decide(metric, frame, found, one_machine=robust and not paired and len(base) < 2)
    level = 99 if verdict in ("regression", "improvement") or reason in ("suspected", "one_machine") else 90
    directed = metric.better is not None and frame.tolerance is not None
    return replace(
        _blank(evidence, verdict, reason),
        head_centre=frame.value(head_centre),
        base_centre=frame.value(base_centre),
        scale=frame.scale,
        difference=frame.difference(harm),
        interval=_interval(frame, found, level),
        level=level,
        p=found.p if found and directed else None,
        counted=units.counted,
        units=len(head),
        base_units=len(base),
        worse_runs=found.off(frame.tolerance, 1) if found and frame.tolerance is not None else 0,
        better_runs=found.off(frame.tolerance, -1) if found and frame.tolerance is not None else 0,
        more_runs=_more_runs(frame, found, reason),
        target=_target(evidence),
        prior=frame.learned,
    )


def _learned(frame: _Frame, evidence: Evidence, units: _Units) -> _Frame:
    """The frame with what was learned of the noise; a metric that cannot vary has none to learn."""
    metric, prior = evidence.metric, evidence.prior
    if prior is None or units.counted == "pair" or metric.noise == 0 or frame.scale != metric.scale:
        return frame
    return replace(frame, noise=prior.noise, learned=prior)


def _decide(metric: Metric, frame: _Frame, found: Estimate | None, *, one_machine: bool) -> tuple[Verdict, Why]:
    if metric.better is None:
        return "inconclusive", "no_direction"
    if frame.tolerance is None:
        return "inconclusive", "no_tolerance"
    if found is None:
        return "inconclusive", "no_noise"
    changes: tuple[tuple[Verdict, int], ...] = (("regression", 1), ("improvement", -1))
    for verdict, sign in changes:
        if not found.changed(frame.tolerance, sign):
            continue
        cannot_vary = metric.noise == 0 and found.variance == 0
        if one_machine and not cannot_vary:
            return "inconclusive", "one_machine"
        if cannot_vary or _agreed(found, frame.tolerance, sign):
            return verdict, ""
        return "inconclusive", "suspected" if sign > 0 else "more_runs"
    return ("no change", "") if found.within(frame.tolerance) else ("inconclusive", "more_runs")


def _agreed(found: Estimate, tolerance: float, sign: int) -> bool:
    """At least two head units, and most of them off by the tolerance each on its own (both, if there are two)."""
    return len(found.units) >= 2 and 2 * found.off(tolerance, sign) > len(found.units)


def _units(evidence: Evidence) -> _Units:
    if evidence.metric.per == "seed":
        return _Units([s.value for s in evidence.head], [s.value for s in evidence.base], "seed")
    if evidence.paired:
        head, base = (_medians(side, lambda s: (s.machine, s.pair)) for side in (evidence.head, evidence.base))
        both = [key for key in head if key in base and key[1] is not None]
        if both:
            return _Units([head[key] for key in both], [base[key] for key in both], "pair")
    sides = (_medians(side, lambda s: (s.machine, None)) for side in (evidence.head, evidence.base))
    head_machines, base_machines = (list(side.values()) for side in sides)
    return _Units(head_machines, base_machines, "machine")


def _medians(
    samples: Sequence[Sample], key: Callable[[Sample], tuple[str, int | None]]
) -> dict[tuple[str, int | None], float]:
    """The runs of one machine, or of one pair, are one measurement: their median."""
    together: dict[tuple[str, int | None], list[float]] = {}
    for sample in samples:
        together.setdefault(key(sample), []).append(sample.value)
    return {name: median(values) for name, values in together.items()}


def _frame(metric: Metric, units: _Units) -> _Frame:
    """Logarithms where the metric asks for them and every value has one; else absolute changes."""
    sign = -1 if metric.better == "higher" else 1
    values = units.head + units.base
    if metric.scale == "linear":
        return _Frame("linear", sign, metric.tolerance, metric.noise)
    if min(values) > 0:
        tolerance = None if metric.tolerance is None else math.log1p(metric.tolerance)
        return _Frame("log", sign, tolerance, metric.noise)
    # a share of 0 is nothing, so the noise is a share of the largest value in sight
    largest = max(abs(value) for value in values)
    tolerance = None if metric.tolerance is None else metric.tolerance * abs(median(units.base))
    return _Frame("linear", sign, tolerance, None if metric.noise is None else metric.noise * largest)


def _interval(frame: _Frame, found: Estimate | None, level: int) -> tuple[float, float] | None:
    if found is None:
        return None
    low, high = sorted(frame.difference(end) for end in found.interval(level))
    return low, high


def _more_runs(frame: _Frame, found: Estimate | None, reason: Why) -> int | None:
    if found is None or frame.tolerance is None or reason not in ("more_runs", "suspected"):
        return None
    return found.more_runs(frame.tolerance)


# ---- what else there is to say ------------------------------------------------------------------------------------


def _head_alone(evidence: Evidence) -> Comparison:
    """What only the head has is new; a base that failed is not the same as none."""
    verdict: Verdict = "inconclusive" if evidence.failed_base else "new"
    units = _units(replace(evidence, paired=False))
    frame = _frame(evidence.metric, replace(units, base=units.head))
    return replace(
        _blank(evidence, verdict, "no_base" if evidence.failed_base else ""),
        head_centre=frame.value(estimate.centre(frame.turn(units.head), robust=evidence.metric.per == "machine")),
        scale=frame.scale,
        counted=units.counted,
        units=len(units.head),
        target=_target(evidence),
    )


def _target(evidence: Evidence) -> TargetState:
    """Whether the head reaches the declared target: the rule against a number that is known exactly."""
    metric = evidence.metric
    if metric.target is None or metric.better is None:
        return ""
    units = _units(replace(evidence, paired=False))
    frame = _learned(_frame(metric, replace(units, base=[metric.target])), evidence, units)
    target = float(frame.turn([metric.target])[0])
    head, robust = frame.turn(units.head), metric.per == "machine"
    found = estimate.of_target(head, target, frame.noise, robust=robust, weight=frame.weight)
    tolerance = frame.tolerance or 0.0
    if found is None or not math.isfinite(found.half(0.995)):
        return "open"
    if found.below(tolerance) or (found.harm <= 0 and found.se == 0):
        return "holds"
    cannot_vary = metric.noise == 0 and found.variance == 0
    missed = found.changed(tolerance, 1) and (cannot_vary or _agreed(found, tolerance, 1))
    return "missed" if missed else "open"


def _blank(evidence: Evidence, verdict: Verdict, reason: Why) -> Comparison:
    return Comparison(
        metric=evidence.metric,
        verdict=verdict,
        reason=reason,
        head=evidence.head,
        base=evidence.base,
        failed_head=evidence.failed_head,
        failed_base=evidence.failed_base,
        missing_head=evidence.missing_head,
        missing_base=evidence.missing_base,
    )


def _without_broken_values(evidence: Evidence) -> Evidence:
    """A value that is NaN or infinite is a run that diverged."""
    head = tuple(sample for sample in evidence.head if math.isfinite(sample.value))
    base = tuple(sample for sample in evidence.base if math.isfinite(sample.value))
    return replace(
        evidence,
        head=head,
        base=base,
        failed_head=evidence.failed_head + len(evidence.head) - len(head),
        failed_base=evidence.failed_base + len(evidence.base) - len(base),
    )


def _count_failures(comparison: Comparison, evidence: Evidence) -> Comparison:
    """What runs without a value do to the verdict: nothing good.

    Half the head's runs or more fail and the base passes at least twice: a regression. A regression seen in the values
    of the others stays one.
    """
    failed, missing = evidence.failed_head, evidence.missing_head
    base_passes = len(evidence.base) + evidence.missing_base >= 2 and evidence.failed_base == 0
    if comparison.verdict == "regression":
        return comparison
    if failed and 2 * failed >= len(evidence.head) + failed + missing and base_passes:
        return replace(comparison, verdict="regression", reason="failed_runs", p=None, more_runs=None)
    if failed:
        return replace(comparison, verdict="failed", reason="failed_runs", more_runs=None)
    if missing:
        return replace(comparison, verdict="not measured", reason="missing_values", more_runs=None)
    if evidence.base and comparison.verdict in _GREEN and (evidence.failed_base or evidence.missing_base):
        reason: Why = "failed_runs" if evidence.failed_base else "missing_values"
        return replace(comparison, verdict="inconclusive", reason=reason)
    return comparison
