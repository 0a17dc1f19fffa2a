"""A report as lines of plain text, ready to be laid out: what the templates of comments, checks and pages fill in.

Nothing here is escaped; each form does that for itself. Whatever looks like a token is masked here, for all forms.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot.core.nouns import BenchmarkReport, Link, Report, RunReport
from bot.core.quantities import moment
from bot.report import cells, findings
from bot.report.findings import EMOJI, Row
from bot.report.masking import mask
from bot.report.text import plain, shorten
from bot.report.values import counted, duration, money

ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a results table. `metric` is empty where the benchmark speaks for itself."""

    benchmark: str
    metric: str
    arrow: str
    base: str
    head: str
    change: str
    tolerance: str
    noise: str
    level: str
    counts: str
    word: str
    emoji: str
    advisory: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows that were measured on one hardware; `left_out` more rows, of any hardware, are on the page only.

    `simulated` says so where the hardware is no real one.
    """

    hardware: str
    lines: tuple[Line, ...]
    left_out: int = 0
    simulated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that needs a person: `sentence` is ours and may hold names in backticks, `command` may be empty."""

    word: str
    emoji: str
    benchmark: str
    sentence: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run of a benchmark."""

    benchmark: str
    number: int
    side: str
    seed: int
    commit: str
    state: str
    time: str
    links: tuple[Link, ...]
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Runs of one side that failed for the same reason; `log` is the end of the last one's, not yet escaped.

    `runs` and `commit` are empty where the benchmark failed before any run.
    """

    benchmark: str
    runs: str
    commit: str
    code: str
    sentence: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one benchmark is."""

    benchmark: str
    hardware: str
    phase: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A name and what it is, for the lists of method and environment; a commit is shown as it is."""

    name: str
    text: str


def tables(rows: Iterable[Row], at_most: int | None = None) -> tuple[Table, ...]:
    """One table per hardware with at most so many rows altogether; the last one tells how many are left out."""
    sorted_rows = tuple(rows)
    kept = sorted_rows if at_most is None else sorted_rows[:at_most]
    found = [
        Table(
            hardware=hardware,
            lines=tuple(line(row) for row in group),
            simulated=findings.simulated_note(group[0].benchmark),
        )
        for hardware, group in findings.by_hardware(kept).items()
    ]
    left_out = len(sorted_rows) - len(kept)
    if left_out:
        last = found.pop() if found else Table(hardware="", lines=())
        found.append(replace(last, left_out=left_out))
    return tuple(found)


def line(row: Row) -> Line:
    """A row as text."""
    comparison = row.comparison
    here = {"benchmark": findings.label(row.benchmark), "word": row.word, "emoji": EMOJI[row.word]}
    if comparison is None:
        empty = dict.fromkeys(("metric", "arrow", "noise", "level", "counts"), "")
        shown = dict.fromkeys(("base", "head", "change", "tolerance"), cells.NOTHING)
        return Line(**here, **empty, **shown, advisory=False)
    return Line(
        **here,
        metric=comparison.metric.name or "(no name)",
        arrow=cells.arrow(comparison.metric),
        base=cells.base_value(comparison),
        head=cells.head_value(comparison),
        change=cells.change(comparison),
        tolerance=cells.tolerance(comparison.metric),
        noise=cells.noise(comparison),
        level=cells.level(comparison),
        counts=cells.spread(comparison),
        advisory=not comparison.metric.gate,
    )


def items(report: Report) -> tuple[Item, ...]:
    """What needs a person, worst first."""
    return tuple(
        Item(
            word=need.word,
            emoji=EMOJI[need.word],
            benchmark=findings.label(need.benchmark),
            sentence=f"{mask(need.sentence).rstrip('. ')}.",
            command=need.command,
        )
        for need in findings.needs(report)
    )


def run_lines(benchmarks: Sequence[BenchmarkReport]) -> tuple[RunLine, ...]:
    """Every run in the order of execution."""
    return tuple(
        RunLine(
            benchmark=findings.label(benchmark),
            number=run.position + 1,
            side=run.side,
            seed=run.seed,
            commit=run.commit,
            state=run.state,
            time=duration(run.seconds) if run.seconds is not None else cells.NOTHING,
            links=run.links,
            id=run.id,
        )
        for benchmark in benchmarks
        for run in sorted(benchmark.runs, key=lambda run: run.position)
    )


def failures(report: Report) -> tuple[Failure, ...]:
    """What failed, each reason of each side once, and every benchmark that failed before any run."""
    alike: dict[tuple[str, str, str], list[tuple[BenchmarkReport, RunReport]]] = {}
    for benchmark, run in findings.failures(report):
        code = run.reason.code if run.reason else "failed"
        alike.setdefault((benchmark.lease_id, run.side, code), []).append((benchmark, run))
    found = [_failure(group) for group in alike.values()]
    failed = {lease for lease, _, _ in alike}
    for benchmark in report.benchmarks:
        if benchmark.reason is not None and benchmark.lease_id not in failed:
            name = findings.label(benchmark)
            code, words = benchmark.reason.code, mask(benchmark.reason.sentence)
            found.append(Failure(benchmark=name, runs="", commit="", code=code, sentence=words, log=""))
    return tuple(found)


def progress(report: Report) -> tuple[Progress, ...]:
    """How far each benchmark is."""
    return tuple(
        Progress(
            benchmark=findings.label(benchmark),
            hardware=benchmark.hardware,
            phase=benchmark.phase or "waiting",
            done=sum(run.state in ENDED for run in benchmark.runs),
            total=len(benchmark.runs),
        )
        for benchmark in report.benchmarks
    )


def headline(report: Report) -> str:
    """The one line that tells how a request stands: `🔴 1 regression · ⚪ 2 no change`."""
    if report.state in ("queued", "running"):
        return f"{EMOJI[report.state]} {progress_word(report)}"
    if report.state == "cancelled":
        return f"{EMOJI['cancelled']} Cancelled"
    found = findings.counts(report)
    if not found or report.reason is not None:
        word = report.verdict or "not measured"
        return f"{EMOJI[word]} {word.capitalize()}"
    return " · ".join(f"{EMOJI[word]} {findings.counted_word(word, count)}" for word, count in found)


def plain_headline(report: Report) -> str:
    """The same line for where colours say what the signs do: `1 regression · 2 no change`."""
    if report.state in ("queued", "running"):
        return progress_word(report)
    if report.state == "cancelled":
        return "Cancelled"
    words = findings.counted_words(report)
    return words[:1].upper() + words[1:]


def progress_word(report: Report) -> str:
    """`Queued`, `Running, 2 of 4 runs done`, `Waiting for confirmation`."""
    if report.waits:
        return "Waiting for confirmation"
    runs = [run for benchmark in report.benchmarks for run in benchmark.runs]
    ended = sum(run.state in ENDED for run in runs)
    far = f", {ended} of {counted(len(runs), 'run')} done" if report.state == "running" and runs else ""
    return f"{report.state.capitalize()}{far}"


def cost(report: Report) -> str:
    """What it has cost, or may cost at most while it goes on; empty where nothing is billed."""
    if report.cost_usd:
        return money(report.cost_usd)
    if report.estimate_usd is None:
        return "price unknown"
    going = report.state in ("queued", "running")
    return f"at most {money(report.estimate_usd)}" if going and report.estimate_usd else ""


def baseline(report: Report) -> str:
    """What the head was compared with, in words."""
    return shorten(plain(report.baseline), characters=80) or "base"


def method(report: Report) -> tuple[Fact, ...]:
    """How it was measured: commits, baseline, order of the runs."""
    facts = [Fact(name="Head", text=report.head_sha)]
    if report.base_sha:
        facts.append(Fact(name=f"Base ({baseline(report)})", text=report.base_sha))
    if report.config_sha:
        facts.append(Fact(name="Configuration from", text=report.config_sha))
    for benchmark in report.benchmarks:
        order = findings.order_of_runs(benchmark.runs)
        if order:
            facts.append(Fact(name=f"Order of runs of {findings.label(benchmark)}", text=order))
    return tuple(facts)


def environment(report: Report) -> tuple[Fact, ...]:
    """Where it ran and what it cost."""
    facts = []
    for benchmark in report.benchmarks:
        name = findings.label(benchmark)
        where = [part for part in (benchmark.hardware, findings.simulated_note(benchmark), benchmark.machine) if part]
        where += [duration(benchmark.seconds)] * (benchmark.seconds > 0)
        where += [money(benchmark.cost_usd)] * (benchmark.cost_usd > 0)
        facts.append(Fact(name=f"{name} ran on", text=", ".join(where)))
        facts += [Fact(name=f"{name} imported", text=note) for note in findings.imported_note(benchmark.runs)]
    if report.finished_at is not None:
        facts.append(Fact(name="Asked and finished", text=_times(report.created_at, report.finished_at)))
    return tuple(facts)


def notes(report: Report) -> tuple[str, ...]:
    """What was noticed on the way; sentences of ours that may hold names in backticks."""
    found = [*report.notes]
    for benchmark in report.benchmarks:
        found += [f"`{findings.label(benchmark)}`: {note}" for note in benchmark.notes]
    return tuple(dict.fromkeys(map(mask, found)))


def _times(created_at: float, finished_at: float) -> str:
    return f"{moment(created_at)}, {moment(finished_at)} ({duration(max(0.0, finished_at - created_at))})"


def _failure(group: Sequence[tuple[BenchmarkReport, RunReport]]) -> Failure:
    benchmark, run = group[-1]
    numbers = ", ".join(str(one.position + 1) for _, one in group)
    return Failure(
        benchmark=findings.label(benchmark),
        runs=f"{run.side}, {'run' if len(group) == 1 else 'runs'} {numbers}",
        commit=run.commit,
        code=run.reason.code if run.reason else "failed",
        sentence=mask(run.reason.sentence) if run.reason else "The run failed.",
        log=mask(next((one.log_tail for _, one in reversed(group) if one.log_tail), "")),
    )
