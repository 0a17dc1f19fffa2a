"""What a benchmark and a request amount to, from their comparisons and from how their runs ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.core.nouns import BenchmarkReport, Reason, RunReport, Side
from bot.core.reasons import reason
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
    """The comparisons that decide: the gates, or all of them where a benchmark has no gate."""
    gates = tuple(comparison for comparison in comparisons if comparison.metric.gate)
    return gates or tuple(comparisons)


def conclude(benchmarks: Sequence[BenchmarkReport]) -> tuple[Verdict, tuple[BenchmarkReport, ...]]:
    """Correct all gates of a request together, then find each benchmark's verdict and the worst of them."""
    judged = iter(judge_report([c for benchmark in benchmarks for c in benchmark.comparisons]))
    concluded = []
    for benchmark in benchmarks:
        corrected = replace(benchmark, comparisons=tuple(next(judged) for _ in benchmark.comparisons))
        conclusion = conclude_benchmark(corrected)
        concluded.append(replace(corrected, verdict=conclusion.verdict, reason=corrected.reason or conclusion.reason))
    verdicts = [benchmark.verdict for benchmark in concluded if benchmark.verdict]
    return (overall(verdicts) if verdicts else "not measured"), tuple(concluded)


def _ended(runs: Sequence[RunReport], side: Side) -> list[RunReport]:
    return [run for run in runs if run.side == side]


def _users(runs: Sequence[RunReport]) -> bool:
    return all(run.reason is not None and run.reason.fault == "user" for run in runs)
