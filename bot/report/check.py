"""The check run of a request, and the one of a pull request that edits the configuration."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.core.nouns import ConfigFault, Report
from bot.report import findings, text, view
from bot.report.comment import WRITERS, links
from bot.report.text import finalize, plain, quiet, shorten
from bot.report.values import counted
from templates import load

Status = Literal["queued", "in_progress", "completed"]
Conclusion = Literal["success", "failure", "neutral", "cancelled", "timed_out", "action_required", "skipped"]
# GitHub's limits: some count characters, some bytes; these are below both
NAME, TITLE, BODY, MESSAGE, ANNOTATION_TITLE = 100, 200, 60_000, 2_000, 255
# the outbox sends them in batches of fifty; more faults than this are told by their number
ANNOTATIONS = 500
APPROVAL_NAME = "benchbot"
CONFIG_NAME = "benchbot / configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A button: GitHub takes 20, 40 and 20 characters."""

    label: str
    description: str
    identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A remark at a line of a file, with the names of GitHub's API."""

    path: str
    start_line: int
    end_line: int
    annotation_level: Literal["notice", "warning", "failure"]
    title: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """A check run as it should be on GitHub. `conclusion` is None until it is completed; texts are Markdown."""

    name: str
    status: Status
    conclusion: Conclusion | None
    title: str
    summary: str
    text: str = ""
    actions: tuple[Action, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    details_url: str = ""


CANCEL = Action(label="Cancel", description="Stop the runs and free the machines", identifier="cancel")
RERUN = Action(label="Re-run", description="Run the same on this commit again", identifier="rerun")
RERUN_FAILED = Action(label="Re-run failed", description="Run again what gave no result", identifier="rerun_failed")


def render_check(report: Report) -> CheckRun:
    """The check run of a request as it stands now. Red only for a gate that is worse, or for missing numbers."""
    status: dict[str, Status] = {"queued": "queued", "running": "in_progress"}
    return CheckRun(
        name=check_name(report),
        status=status.get(report.state, "completed"),
        conclusion=conclusion(report),
        title=shorten(quiet(plain(_title(report))), characters=TITLE, size=TITLE),
        summary=_fitting(lambda rows: _summary(report, rows)),
        text=_fitting(lambda rows: _details(report, rows)),
        actions=_actions(report),
        details_url=next((text.safe_url(link.url) for link in report.links), ""),
    )


def check_name(report: Report) -> str:
    """`benchbot` for an approval, the one to require; `benchbot / resnet50, vit` for what a command named.

    It is made of the words of the command, so that it is the same from the first sign to the last.
    """
    if report.kind == "approval":
        return APPROVAL_NAME
    names = [plain(word) for word in report.targets] or ["all"]
    for shown in range(len(names), 0, -1):
        rest = f" and {len(names) - shown} more" if shown < len(names) else ""
        name = f"{APPROVAL_NAME} / {', '.join(names[:shown])}{rest}"
        if len(name.encode()) <= NAME:
            return name
    return shorten(f"{APPROVAL_NAME} / {names[0]}", **_limits(NAME))


def conclusion(report: Report) -> Conclusion | None:
    """What the check run concludes; None while the request is not final."""
    if report.state in ("queued", "running"):
        return None
    if report.state == "cancelled":
        return "cancelled"
    if any(_blocks(row) for row in findings.rows(report)):
        return "failure"
    if report.verdict in ("failed", "not measured"):
        return _without_numbers(report)
    return "success" if report.verdict in ("no change", "improvement", "passed") else "neutral"


def config_check(faults: Sequence[ConfigFault] | None, path: str) -> CheckRun:
    """The check run of a pull request that edits the configuration at `path`; without faults it is green."""
    faults = faults or ()
    where = text.code(path)
    if faults:
        title = f"{counted(len(faults), 'fault')} in the configuration"
        context = {"faults": faults[:ANNOTATIONS], "more": max(0, len(faults) - ANNOTATIONS), "path": where}
        summary = _fitting(lambda rows: _render("configuration.md", context | {"listed": faults[:rows]}))
    else:
        title = "The configuration is valid"
        summary = f"{where} can be read, and everything in it is known."
    return CheckRun(
        name=CONFIG_NAME,
        status="completed",
        conclusion="failure" if faults else "success",
        title=title,
        summary=summary,
        annotations=tuple(_annotation(fault, path) for fault in faults[:ANNOTATIONS]),
    )


def _annotation(fault: ConfigFault, path: str) -> Annotation:
    message = f"{fault.sentence} {fault.hint}".strip()
    return Annotation(
        path=path,
        start_line=max(1, fault.line),
        end_line=max(1, fault.line),
        annotation_level="failure",
        title=shorten(quiet(plain(fault.where)), **_limits(ANNOTATION_TITLE)) or "Configuration",
        message=shorten(quiet(plain(message)), **_limits(MESSAGE)) or "This cannot be read.",
    )


def _without_numbers(report: Report) -> Conclusion:
    reasons = findings.faults(report)
    codes = {reason.code for reason in reasons}
    if codes and codes <= {"budget", "lapsed"}:
        return "action_required"
    if codes and codes <= {"timeout", "lease_timeout"}:
        return "timed_out"
    # a machine that did not come is no fault of the pull request
    return "neutral" if reasons and all(reason.fault != "user" for reason in reasons) else "failure"


def _blocks(row: findings.Row) -> bool:
    gate = row.comparison is None or row.comparison.metric.gate
    return row.verdict == "regression" and gate


def _title(report: Report) -> str:
    if report.state in ("queued", "running"):
        phases = [one.phase for one in view.progress(report) if one.phase]
        return f"{view.progress_word(report)}: {phases[0]}" if phases else view.progress_word(report)
    return view.plain_headline(report)


def _actions(report: Report) -> tuple[Action, ...]:
    if report.state in ("queued", "running"):
        return (CANCEL,)
    missing = any(benchmark.verdict in ("failed", "not measured") for benchmark in report.benchmarks)
    return (RERUN, RERUN_FAILED) if missing and len(report.benchmarks) > 1 else (RERUN,)


def _summary(report: Report, rows: int) -> str:
    going = report.state in ("queued", "running")
    progress = view.progress(report) if going else ()
    needs = view.items(report)
    context = {
        "report": report,
        "baseline": view.baseline(report),
        "links": links(report),
        "page": next((link.url for link in report.links), ""),
        "going": going,
        "progress": progress[:rows],
        "more_progress": max(0, len(progress) - rows),
        "needs": needs[: min(rows, findings.NEEDS)],
        "more_needs": max(0, len(needs) - findings.NEEDS),
        "tables": view.tables(findings.rows(report), rows) if report.state == "done" else (),
    }
    return _render("summary.md", context)


def _details(report: Report, rows: int) -> str:
    if report.state != "done":
        return ""
    facts = (*view.method(report), *view.environment(report))
    runs = view.run_lines(report.benchmarks)
    context = {
        "facts": facts[:rows],
        "runs": runs[:rows],
        "runs_count": len(runs),
        "notes": view.notes(report)[:rows],
        "page": next((link.url for link in report.links), ""),
    }
    return _render("details.md", context)


def _render(name: str, context: dict[str, object]) -> str:
    return load("checks", name, finalize=finalize).render({**WRITERS, **context}).strip()


def _fitting(render: Callable[[int], str], sizes: Iterable[int] = (200, 60, 20, 5, 1)) -> str:
    """The longest rendering that fits in bytes; one row of each kind does, for each cell has its own limit."""
    body = ""
    for rows in sizes:
        body = render(rows)
        if len(body.encode()) <= BODY:
            return body
    return text.fold_end(body, BODY // 4)


def _limits(most: int) -> dict[str, int]:
    return {"characters": most, "size": most}
