"""What a benchmark and a request amount to, from their comparisons and from how their runs ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.core.nouns import BenchmarkReport, RunReport, Side
from bot.core.reasons import Reason, reason
from bot.measure.confirming import confirm, is_suspected, unconfirmed
from bot.measure.patterns import declared
from bot.measure.verdict import Comparison, Verdict, judge_report, overall


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A verdict, and the reason when there are no numbers to stand for it."""

    verdict: Verdict
    reason: Reason | None = None


def conclude_benchmark(report: BenchmarkReport) -> Conclusion:
    """The verdict of one benchmark: its gates, unless its runs failed.

    Head failing in half its runs or more, while base passes twice, is a regression. Failing on both sides is failed.
    Infrastructure that gave no numbers is not measured.
    """
    if report.reason is not None:
        return Conclusion("failed" if report.reason.fault == "user" else "not measured", report.reason)
    head, base = _ended(report.runs, "head"), _ended(report.runs, "base")
    broken = [run for run in head if run.state != "done"]
    if broken and 2 * len(broken) >= len(head):
        base_passes = [run for run in base if run.state == "done"]
        blamed = len(base_passes) >= 2 and len(base_passes) == len(base) and _users(broken)
        verdict: Verdict = "regression" if blamed else "failed"
        if not _users(broken):
            verdict = "not measured"
        return Conclusion(verdict, broken[0].reason)
    if broken:
        return Conclusion("failed", broken[0].reason)
    if not report.comparisons:
        # judged by the exit status alone: the head passed
        base_broken = [run for run in base if run.state != "done"]
        return Conclusion("improvement" if base and len(base_broken) == len(base) else "passed")
    if all(comparison.verdict == "not measured" for comparison in report.comparisons):
        return Conclusion("not measured", reason("no_metrics"))
    return Conclusion(overall([c.verdict for c in deciding(report.comparisons)]))


def deciding(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons that decide: the gates, or all of them where a benchmark has no gate.

    A metric without a direction can only tell that its runs failed, unless there is nothing else.
    """
    gates = tuple(comparison for comparison in comparisons if comparison.metric.gate)
    directed = tuple(one for one in comparisons if one.metric.better is not None or one.reason == "failed_runs")
    return gates or directed or tuple(comparisons)


def conclude(benchmarks: Sequence[BenchmarkReport]) -> tuple[Verdict, tuple[BenchmarkReport, ...]]:
    """Correct all gates of a request together, then find each benchmark's verdict and the worst of them.

    A regression that no second lease was asked about is suspected only.
    """
    concluded = []
    for benchmark in _corrected(benchmarks):
        doubted = [unconfirmed(c) if _stands_alone(benchmark, c) else c for c in benchmark.comparisons]
        corrected = replace(benchmark, comparisons=tuple(doubted))
        conclusion = conclude_benchmark(corrected)
        concluded.append(replace(corrected, verdict=conclusion.verdict, reason=corrected.reason or conclusion.reason))
    verdicts = [benchmark.verdict for benchmark in concluded if benchmark.verdict]
    return (overall(verdicts) if verdicts else "not measured"), tuple(concluded)


def suspected(benchmarks: Sequence[BenchmarkReport]) -> tuple[str, ...]:
    """The leases that a second one has to repeat before any of these benchmarks is called worse."""
    return tuple(
        benchmark.lease_id
        for benchmark in _corrected(benchmarks)
        if benchmark.reason is None
        and not benchmark.repeated
        and any(c.metric.confirm and is_suspected(c) for c in deciding(benchmark.comparisons))
    )


def join(first: BenchmarkReport, second: BenchmarkReport) -> BenchmarkReport:
    """A lease and the one that repeats it as one; without numbers of the second, the first as it is, and why."""
    together = replace(
        first,
        runs=first.runs + second.runs,
        machine=", ".join(dict.fromkeys(name for name in (first.machine, second.machine) if name)),
        cost_usd=first.cost_usd + second.cost_usd,
        seconds=first.seconds + second.seconds,
    )
    if second.reason is not None or _names(second) != _names(first):
        why = second.reason.sentence if second.reason else "It gave no numbers."
        return replace(together, notes=(*first.notes, f"It could not be repeated on another machine. {why}"))
    others = {comparison.metric.name: comparison for comparison in second.comparisons}
    # a curve that a pattern found on one of them only is not confirmed
    pooled = tuple(
        confirm(one, others.pop(one.metric.name)) if one.metric.name in others else _alone(one)
        for one in first.comparisons
    )
    pooled += tuple(_alone(other) for other in others.values())
    return replace(
        together, comparisons=pooled, repeated=True, notes=tuple(dict.fromkeys((*first.notes, *second.notes)))
    )


def _names(report: BenchmarkReport) -> set[str]:
    return {declared(comparison.metric.name) for comparison in report.comparisons}


def _alone(comparison: Comparison) -> Comparison:
    doubtful = comparison.metric.confirm and is_suspected(comparison)
    return unconfirmed(comparison) if doubtful else comparison


def _corrected(benchmarks: Sequence[BenchmarkReport]) -> list[BenchmarkReport]:
    """With the verdicts that the number of gates leaves."""
    judged = iter(judge_report([c for benchmark in benchmarks for c in benchmark.comparisons]))
    return [
        replace(benchmark, comparisons=tuple(next(judged) for _ in benchmark.comparisons)) for benchmark in benchmarks
    ]


def _stands_alone(benchmark: BenchmarkReport, comparison: Comparison) -> bool:
    regressed = comparison.verdict == "regression" and is_suspected(comparison)
    return regressed and comparison.metric.confirm and not benchmark.repeated


def _ended(runs: Sequence[RunReport], side: Side) -> list[RunReport]:
    return [run for run in runs if run.side == side]


def _users(runs: Sequence[RunReport]) -> bool:
    return all(run.reason is not None and run.reason.fault == "user" for run in runs)
