"""The results comment of a request, its short notice, and the reply to a comment with commands: all Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.core.nouns import Refusal, Report
from bot.report import findings, text, view
from bot.report.text import Markdown, finalize
from bot.report.values import counted
from templates import load

# GitHub takes 65,536 characters
LIMIT = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a person gets for one line: accepted with a request, an answer in Markdown, or a refusal.

    `text` is Markdown of our own making; whatever came from people has been escaped before it got in.
    """

    line: int
    typed: str
    text: str = ""
    refusal: Refusal | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """How much of each part is shown: what needs people, rows open and folded, runs, failures and lines of log."""

    needs: int
    rows: int
    folded: int
    runs: int
    failures: int
    log_lines: int
    facts: int


# the first that fits is taken; the last one fits whatever the report holds
_ROOMS = (
    _Room(needs=5, rows=100, folded=100, runs=100, failures=10, log_lines=30, facts=60),
    _Room(needs=5, rows=60, folded=40, runs=40, failures=5, log_lines=20, facts=30),
    _Room(needs=5, rows=30, folded=10, runs=10, failures=3, log_lines=10, facts=10),
    _Room(needs=3, rows=10, folded=0, runs=0, failures=1, log_lines=5, facts=5),
    _Room(needs=1, rows=5, folded=0, runs=0, failures=0, log_lines=0, facts=0),
)


def render_comment(report: Report, *, marker: str) -> str:
    """The results comment as it stands now: at most 60,000 characters, beginning with `marker`.

    What is too much is counted and left to the results page.
    """
    template = load("comments", "results.md", finalize=finalize)
    body = ""
    for room in _ROOMS:
        body = template.render(_context(report, room), marker=Markdown(marker))
        if len(body) <= LIMIT:
            return body
    return text.fold_end(body, LIMIT)


def short_notice(report: Report) -> str:
    """The new comment that tells people of an end worth telling; edits of the long one notify nobody."""
    needs = view.items(report)
    context = {
        "report": report,
        "headline": view.headline(report),
        "needs": needs[:1],
        "more": len(needs) - 1,
        "links": links(report),
        **WRITERS,
    }
    return load("comments", "notice.md", finalize=finalize).render(context).strip()


def render_reply(items: Sequence[Reply]) -> str:
    """One joint reply to the lines of one comment: what was accepted, what was answered, what was refused and why."""
    body = load("comments", "reply.md", finalize=finalize).render(items=items, several=len(items) > 1, **WRITERS)
    return text.fold_end(body.strip(), LIMIT)


def _code_all(words: Sequence[str]) -> Markdown:
    return Markdown(" · ".join(text.code(word, limit=300) for word in words))


# what templates write text of people with
WRITERS: Mapping[str, object] = {
    "code": text.code,
    "sentence": text.sentence,
    "link": text.link,
    "block": text.block,
    "url": lambda address: Markdown(text.safe_url(address)),
    "commit": text.commit,
    "typed": text.typed,
    "fact": lambda words: Markdown(f"`{words}`") if text.is_commit(words) else text.code(words, limit=200),
    "md": Markdown,
    "counted": counted,
    "code_all": _code_all,
}


def links(report: Report) -> tuple[Markdown, ...]:
    """The links of a report, at most eight."""
    return tuple(text.link(link.name, link.url) for link in report.links[:8])


def _context(report: Report, room: _Room) -> dict[str, object]:
    rows = findings.rows(report)
    first = tuple(row for row in rows if row.shown_first)
    rest = tuple(row for row in rows if not row.shown_first)
    needs = view.items(report)
    runs = view.run_lines(report.benchmarks)
    failures = view.failures(report)
    notes = view.notes(report)
    progress = view.progress(report)
    curves = [b for b in report.benchmarks if text.safe_url(b.curves_url)] if report.state == "done" else []
    return {
        "report": report,
        "going": report.state in ("queued", "running"),
        "headline": view.headline(report),
        "baseline": view.baseline(report),
        "links": links(report),
        "page": next((link.url for link in report.links), ""),
        "needs": needs[: room.needs],
        "more_needs": max(0, len(needs) - room.needs),
        "progress": progress[: room.rows],
        "more_progress": max(0, len(progress) - room.rows),
        "tables": view.tables(first, room.rows) if report.state == "done" else (),
        "rest": view.tables(rest, room.folded) if report.state == "done" else (),
        "rest_count": len(rest),
        "numbers": view.tables([row for row in rows if row.comparison], room.folded) if report.state == "done" else (),
        "curves": curves[: min(3, room.rows)],
        "more_curves": curves[3 : max(3, room.folded // 3)],
        "runs": runs[: room.runs],
        "runs_count": len(runs),
        "failures": failures[: room.failures],
        "failures_count": len(failures),
        "log_lines": room.log_lines,
        "notes": notes[: room.facts],
        "notes_count": len(notes),
        "method": view.method(report)[: room.facts],
        "environment": view.environment(report)[: room.facts],
        "cost": view.cost(report),
        "commands": findings.next_commands(report),
        **WRITERS,
    }
