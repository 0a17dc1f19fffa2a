"""The issue of an alarm: its title, its text in Markdown, and whether it is open."""

from dataclasses import dataclass
from typing import Any

from bot.core.alarms import AlarmReport, Suspect
from bot.core.quantities import moment
from bot.report import text
from bot.report.cells import change
from bot.report.comment import LIMIT, WRITERS
from bot.report.masking import mask
from bot.report.text import Markdown, finalize
from bot.report.view import Fact
from templates import load

LONGEST_TITLE = 200
# a link makes GitHub tell the pull request that it was named: for a few that is news, for fifty it is noise
MOST_LINKED = 10
LABEL = "benchbot"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One suspect as it is listed."""

    name: str
    number: int | None
    url: str
    subject: str
    author: str
    sha: str


def render_issue(alarm: AlarmReport, *, marker: str) -> dict[str, Any]:
    """Title, body and state of an alarm's issue, as GitHub's API takes them."""
    body = load("issues", "alarm.md", finalize=finalize).render(_context(alarm), marker=Markdown(marker))
    wanted: dict[str, Any] = {"title": title(alarm), "body": text.fold_end(body.strip(), LIMIT)}
    if alarm.state == "open":
        return {**wanted, "state": "open", "labels": [LABEL]}
    reason = "completed" if alarm.state == "closed" else "not_planned"
    return {**wanted, "state": "closed", "state_reason": reason, "labels": [LABEL]}


def title(alarm: AlarmReport) -> str:
    """`resnet50.accuracy: −1.3 pp since 3f2a9c1`; plain text, since titles know no Markdown."""
    since = f" since {alarm.bad_sha[:7]}" if alarm.bad_sha else ""
    what = {"failing": "fails", "missed": "did not start"}.get(alarm.kind, "")
    if alarm.kind == "regression" and alarm.comparison is not None:
        what = change(alarm.comparison).partition(" (")[0]
    variant = f" ({alarm.variant})" if alarm.variant else ""
    said = text.quiet(text.plain(mask(f"{alarm.name}{variant}: {what}")))
    return f"{text.shorten(said, characters=LONGEST_TITLE)}{since}"


def _context(alarm: AlarmReport) -> dict[str, object]:
    facts = [Fact(name="First bad commit", text=alarm.bad_sha)] if alarm.bad_sha else []
    facts += [Fact(name="Last good commit", text=alarm.good_sha)] if alarm.good_sha else []
    facts += [Fact(name="Last measured", text=alarm.last_sha)] if alarm.last_sha else []
    facts += [Fact(name="Variant", text=alarm.variant)] if alarm.variant else []
    facts.append(Fact(name="Seen first", text=moment(alarm.opened_at)))
    links = [text.link(name, url) for name, url in (("alarm", alarm.page), ("results", alarm.results)) if url]
    linked = len(alarm.suspects) + alarm.more_suspects <= MOST_LINKED
    return {
        "alarm": alarm,
        "closing": _closing(alarm),
        "facts": facts,
        "suspects": [_line(alarm, suspect, linked=linked) for suspect in alarm.suspects],
        "between": _between(alarm),
        "more": alarm.more_suspects,
        "links": links,
        **WRITERS,
    }


def _line(alarm: AlarmReport, suspect: Suspect, *, linked: bool) -> _Line:
    url = f"{alarm.web_url}/pull/{suspect.number}" if linked and suspect.number and alarm.web_url else ""
    return _Line(
        name=f"#{suspect.number}" if suspect.number else "",
        number=suspect.number,
        url=url,
        subject=mask(suspect.subject),
        author=suspect.author,
        sha=suspect.sha,
    )


def _between(alarm: AlarmReport) -> Markdown:
    count = len(alarm.suspects) + alarm.more_suspects
    if not alarm.good_sha:
        return Markdown("No commit before it was measured to be good.")
    what = "It is this commit:" if count == 1 else f"It is one of these {count} commits, the newest first:"
    return Markdown(what)


def _closing(alarm: AlarmReport) -> Markdown:
    at = text.commit(alarm.last_sha) if alarm.last_sha else ""
    return Markdown(f"{text.code(alarm.branch)} is as good as it was" + (f", measured at {at}." if at else "."))
