"""What a report has to say, before it is said in any form: rows, counts, what needs a person, which command is next.

Comment, check run, page, terminal and JSON all take their content from here, so they cannot disagree.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.core.conclusion import deciding
from bot.core.nouns import BenchmarkReport, Report, RunReport
from bot.core.options import MOST_PAIRS, MOST_SEEDS
from bot.core.reasons import Reason
from bot.core.words import quoted
from bot.measure.verdict import Comparison, Verdict

NEEDS = 5

# worst first: the order in which people should read
_ORDER: tuple[Verdict, ...] = (
    "failed",
    "not measured",
    "regression",
    "inconclusive",
    "improvement",
    "no change",
    "new",
    "passed",
)
EMOJI: dict[str, str] = {
    "failed": "❌",
    "not measured": "⚠️",
    "regression": "🔴",
    "inconclusive": "🟡",
    "improvement": "🟢",
    "no change": "⚪",
    "new": "🔵",
    "passed": "✅",
    "suspected": "🟠",
    "queued": "⏳",
    "running": "⏳",
    "cancelled": "⚫",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a results table: a metric of a benchmark, or the benchmark itself when it has no numbers to show."""

    benchmark: BenchmarkReport
    comparison: Comparison | None
    verdict: Verdict
    decides: bool

    @property
    def shown_first(self) -> bool:
        """Whether it belongs into the table that is open: it decides, or something changed."""
        return self.decides or self.verdict not in ("no change", "inconclusive", "new")

    @property
    def word(self) -> str:
        """The verdict's word; `suspected` where a regression is likely and not yet proven."""
        suspected = self.comparison is not None and self.comparison.reason in ("suspected", "unrepeated")
        return "suspected" if suspected else self.verdict


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a person should look at: a sentence of ours, and the command that helps, empty when none does."""

    benchmark: BenchmarkReport
    word: str
    sentence: str
    command: str


def rows(report: Report) -> tuple[Row, ...]:
    """Every row of the report, worst first; each benchmark has at least one."""
    found = [row for benchmark in report.benchmarks for row in _rows(benchmark)]
    return tuple(sorted(found, key=lambda row: (not row.decides, _ORDER.index(row.verdict))))


def by_hardware(found: Iterable[Row]) -> dict[str, tuple[Row, ...]]:
    """The rows of each hardware, in the order in which the hardware first appears."""
    grouped: dict[str, list[Row]] = {}
    for row in found:
        grouped.setdefault(row.benchmark.hardware, []).append(row)
    return {hardware: tuple(group) for hardware, group in grouped.items()}


def simulated_note(benchmark: BenchmarkReport) -> str:
    """What has to stand wherever its hardware is named; empty when it is real."""
    what = benchmark.simulated
    return f"simulated {what.upper()}: a CPU in its place, not comparable with a real one" if what else ""


def counts(report: Report) -> tuple[tuple[str, int], ...]:
    """How many of the rows that decide have which word, worst first."""
    words = [row.word for row in rows(report) if row.decides]
    return tuple((word, words.count(word)) for word in dict.fromkeys(words))


def counted_words(report: Report) -> str:
    """`1 regression · 2 no change`: the counts as one plain line; the report's own verdict when there are none."""
    found = counts(report)
    if not found:
        return report.verdict or report.state
    return " · ".join(counted_word(word, count) for word, count in found)


def counted_word(word: str, count: int) -> str:
    """`2 regressions`, `1 suspected regression`, `1 no change`."""
    noun = {"suspected": "suspected regression"}.get(word, word)
    plural = "s" if count != 1 and noun.endswith(("regression", "improvement")) else ""
    return f"{count:,} {noun}{plural}"


def needs(report: Report) -> tuple[Need, ...]:
    """What needs a person, worst first: failures, regressions, and gates that could not be decided."""
    if report.state != "done":
        return ()
    found = []
    named = "on=" in report.command or "--on" in report.command
    for row in rows(report):
        matters = row.verdict in ("failed", "not measured", "regression")
        if matters or (row.decides and row.verdict == "inconclusive"):
            found.append(Need(row.benchmark, row.word, _sentence(row), next_command(row, name_hardware=named)))
    return tuple(found)


def next_command(row: Row, *, name_hardware: bool = False) -> str:
    """The line to type about a row: more runs where they would decide, else the failed runs again.

    `name_hardware` when the benchmark's own first hardware may be another one.
    """
    benchmark, comparison = row.benchmark, row.comparison
    name = quoted(benchmark.benchmark)
    if comparison is None or row.verdict in ("failed", "not measured"):
        return f"/benchmark retry {name}"
    if row.verdict not in ("inconclusive", "regression"):
        return ""
    # a regression is worth one more look before it is believed, an open question as many runs as it takes
    wanted = comparison.units + max(1, comparison.more_runs or 0)
    option, most = {"pair": ("pairs", MOST_PAIRS), "seed": ("seeds", MOST_SEEDS)}.get(comparison.counted, ("", wanted))
    if wanted > most:
        return ""
    if (
        row.verdict == "inconclusive"
        and not comparison.more_runs
        and comparison.reason not in ("suspected", "unrepeated")
    ):
        return ""
    words = [f"{option}={wanted}"] if option else []
    words += [f"scenario={quoted(benchmark.scenario)}"] * (benchmark.scenario not in ("", "default"))
    words += [f"init={quoted(benchmark.init)}"] * (benchmark.init not in ("", "default"))
    words += [f"on={quoted(benchmark.hardware)}"] * name_hardware
    return " ".join(["/benchmark", name, *words])


def next_commands(report: Report) -> tuple[str, ...]:
    """Lines that a person may want to type now, the most useful first."""
    if report.next_commands:
        return report.next_commands[:NEEDS]
    if report.waits:
        return ("/benchmark confirm", "/benchmark cancel")
    if report.state in ("queued", "running"):
        return ("/benchmark cancel", "/benchmark status")
    if not report.benchmarks:
        return (*(f"/benchmark plan{again[10:]}" for again in _again(report)), "/benchmark help")
    again = ["/benchmark retry"] if report.verdict in ("failed", "not measured") or report.state == "cancelled" else []
    return (*again, *_again(report), "/benchmark help")


def failures(report: Report) -> tuple[tuple[BenchmarkReport, RunReport], ...]:
    """Every run that failed, with its benchmark."""
    return tuple((b, run) for b in report.benchmarks for run in b.runs if run.state == "failed")


def faults(report: Report) -> tuple[Reason, ...]:
    """Why numbers are missing: the reason of the request, else those of its benchmarks that have no result."""
    if report.reason is not None:
        return (report.reason,)
    missing = [b for b in report.benchmarks if b.verdict in ("failed", "not measured")]
    return tuple(benchmark.reason for benchmark in missing if benchmark.reason is not None)


def label(benchmark: BenchmarkReport) -> str:
    """The benchmark's name, with its scenario and initialisation where they are not the default."""
    variant = [name for name in (benchmark.scenario, benchmark.init) if name not in ("", "default")]
    return f"{benchmark.benchmark} ({', '.join(variant)})" if variant else benchmark.benchmark


def order_of_runs(runs: Sequence[RunReport]) -> str:
    """`H B B H`: the sides in the order of execution."""
    return " ".join("H" if run.side == "head" else "B" for run in sorted(runs, key=lambda run: run.position))


def imported_note(runs: Sequence[RunReport]) -> tuple[str, ...]:
    """What each side really imported, each text once."""
    return tuple(dict.fromkeys(f"{run.side}: {run.imported}" for run in runs if run.imported))


def short(sha: str) -> str:
    """A commit as people write it."""
    return sha[:7]


def _rows(benchmark: BenchmarkReport) -> list[Row]:
    deciders = deciding(benchmark.comparisons)
    found = [Row(benchmark, c, c.verdict, c in deciders) for c in benchmark.comparisons]
    if benchmark.reason is not None or not found:
        # the benchmark speaks for itself: it failed, or it has no metrics
        found = [row for row in found if row.verdict != "not measured"]
        found.insert(0, Row(benchmark, None, benchmark.verdict or "not measured", True))
    return found


def _sentence(row: Row) -> str:
    if row.comparison is not None:
        return row.comparison.sentence
    failed = [run for run in row.benchmark.runs if run.state == "failed"]
    reason = row.benchmark.reason or next((run.reason for run in failed if run.reason), None)
    words = reason.sentence if reason else "no run gave a result"
    parts = [f"{row.verdict}: {words.rstrip('. ')}."]
    if failed:
        sides = [f"{_of(failed, side, row.benchmark.runs)} {side}" for side in ("head", "base")]
        parts.append(f"{' and '.join(side for side in sides if not side.startswith('0'))} runs failed.")
    return " ".join(parts)


def _of(failed: Sequence[RunReport], side: str, runs: Sequence[RunReport]) -> str:
    count = sum(run.side == side for run in failed)
    return f"{count} of {sum(run.side == side for run in runs)}" if count else "0"


def _again(report: Report) -> tuple[str, ...]:
    return (report.command,) if report.command.startswith("/benchmark") else ()
