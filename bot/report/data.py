"""A report as plain values for `--json`: numbers as they are, names as they were given, nothing that JSON lacks."""

import math

from bot.core.nouns import BenchmarkReport, Report, RunReport
from bot.core.reasons import Reason
from bot.measure.verdict import Comparison
from bot.report.check import conclusion


def request_data(report: Report, *, comment: str = "") -> dict[str, object]:
    """One request: verdict in the words of the glossary, conclusion of its check run, links, and every number.

    `comment` is the results comment's address, or its text where there is no address. A number that is not finite is
    the text "NaN", "Infinity" or "-Infinity"; what does not exist is None.
    """
    return {
        "request": report.request_id,
        "repository": report.full_name,
        "pull_request": report.number or None,
        "command": report.command,
        "state": report.state,
        "verdict": report.verdict,
        "head_sha": report.head_sha,
        "base_sha": report.base_sha or None,
        "baseline": report.baseline,
        "conclusion": conclusion(report),
        "outdated_by": report.outdated_by or None,
        "reason": _reason(report.reason),
        "comment": comment,
        "links": {link.name: link.url for link in report.links},
        "estimate_usd": report.estimate_usd,
        "cost_usd": report.cost_usd,
        "reproduce": report.reproduce,
        "notes": list(report.notes),
        "benchmarks": [_benchmark(benchmark) for benchmark in report.benchmarks],
    }


def _benchmark(benchmark: BenchmarkReport) -> dict[str, object]:
    return {
        "benchmark": benchmark.benchmark,
        "scenario": benchmark.scenario,
        "init": benchmark.init,
        "hardware": benchmark.hardware,
        "simulated": benchmark.simulated or None,
        "machine": benchmark.machine,
        "verdict": benchmark.verdict,
        "reason": _reason(benchmark.reason),
        "metrics": [_comparison(comparison) for comparison in benchmark.comparisons],
        "runs": [_run(run) for run in benchmark.runs],
        "notes": list(benchmark.notes),
        "seconds": _number(benchmark.seconds),
        "cost_usd": _number(benchmark.cost_usd),
    }


def _comparison(comparison: Comparison) -> dict[str, object]:
    metric = comparison.metric
    interval = comparison.interval
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        "gate": metric.gate,
        "tolerance": _number(metric.tolerance),
        "scale": comparison.scale,
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "sentence": comparison.sentence,
        "head": _number(comparison.head_centre),
        "base": _number(comparison.base_centre),
        "head_values": [_number(sample.value) for sample in comparison.head],
        "base_values": [_number(sample.value) for sample in comparison.base],
        "difference": _number(comparison.difference),
        "interval": [_number(end) for end in interval] if interval else None,
        "level": comparison.level,
        "p": _number(comparison.p),
        "more_runs": comparison.more_runs,
    }


def _run(run: RunReport) -> dict[str, object]:
    return {
        "run": run.id,
        "side": run.side,
        "seed": run.seed,
        "position": run.position,
        "commit": run.commit,
        "state": run.state,
        "seconds": _number(run.seconds),
        "reason": _reason(run.reason),
        "imported": run.imported,
        "links": {link.name: link.url for link in run.links},
    }


def _reason(reason: Reason | None) -> dict[str, str] | None:
    if reason is None:
        return None
    return {"code": reason.code, "sentence": reason.sentence, "fault": reason.fault}


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
