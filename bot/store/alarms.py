"""Alarms as rows: which series has one, what it says, and where the base windows of its series begin and end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Executable, insert, select, update

from bot.core.alarms import MOST_SUSPECTS, AlarmReport, Suspect, suspects_between
from bot.measure.verdict import Comparison
from bot.store.codec import load
from bot.store.database import Transaction
from bot.store.memory import Alarm, Branch, Commit
from bot.store.tables import Repository


@dataclass(frozen=True, slots=True)
class Segment:
    """The stretch of a branch whose samples are a base: from a commit on, up to another one; empty: from the first, up
    to the last."""

    since: str = ""
    until: str = ""


async def open_alarms(tx: Transaction, repository_id: int, keys: Sequence[str]) -> Mapping[str, Alarm]:
    """The open alarm of each of these series or benchmarks, where there is one."""
    mine = (Alarm.repository_id == repository_id, Alarm.key.in_(keys), Alarm.state == "open")
    return {alarm.key: alarm for alarm in await tx.scalars(select(Alarm).where(*mine))}


async def segments(tx: Transaction, repository_id: int, keys: Sequence[str]) -> Mapping[str, Segment]:
    """Where the base of a series stands by its alarms: before what is open, and from what was accepted last on."""
    mine = (Alarm.repository_id == repository_id, Alarm.key.in_(keys), Alarm.state.in_(("open", "accepted")))
    found: dict[str, Segment] = {}
    for alarm in await tx.scalars(select(Alarm).where(*mine).order_by(Alarm.opened_at, Alarm.id)):
        before = found.get(alarm.key, Segment())
        if alarm.state == "open":
            found[alarm.key] = Segment(before.since, alarm.good_sha)
        else:
            found[alarm.key] = Segment(alarm.bad_sha, before.until)
    return found


def raise_alarm(values: Mapping[str, Any], now: float) -> Executable:
    """A new alarm, which its worker tells of at once; `values` are columns of the table."""
    return insert(Alarm).values(state="open", due_at=now, opened_at=now, **values)


def renew(alarm_id: str, now: float, **values: Any) -> Executable:
    """Something newer is known of an open alarm."""
    mine = (Alarm.id == alarm_id, Alarm.state == "open")
    return update(Alarm).where(*mine).values(poked=True, due_at=now, **values)


async def alarm_report(tx: Transaction, alarm: Alarm, base_url: str, github_web_url: str) -> AlarmReport:
    """What an alarm has to say now."""
    repository = await tx.get_one(Repository, alarm.repository_id)
    branch = await tx.get(Branch, str(alarm.repository_id))
    shown, more = suspects_between(await _suspects(tx, alarm))
    return AlarmReport(
        id=alarm.id,
        kind=alarm.kind,  # type: ignore[arg-type] # one of AlarmKind, as it was written
        state=alarm.state,  # type: ignore[arg-type]
        full_name=repository.full_name,
        branch=branch.name if branch and branch.name else repository.default_branch,
        name=alarm.name,
        variant=alarm.variant,
        sentence=alarm.sentence,
        comparison=load(Comparison, alarm.comparison) if alarm.comparison else None,
        good_sha=alarm.good_sha,
        bad_sha=alarm.bad_sha,
        last_sha=alarm.last_sha,
        suspects=shown,
        more_suspects=more,
        opened_at=alarm.opened_at,
        ended_at=alarm.ended_at,
        accepted_by=alarm.accepted_by,
        why=alarm.why,
        page=f"{base_url}/alarms/{alarm.id}",
        results=f"{base_url}/requests/{alarm.request_id}" if alarm.request_id else "",
        web_url=f"{github_web_url}/{repository.full_name}",
    )


async def _suspects(tx: Transaction, alarm: Alarm) -> list[Suspect]:
    """The commits after the good one up to the bad one, newest first; only the bad one where no good one is known."""
    mine = Commit.repository_id == alarm.repository_id
    last = select(Commit.position).where(mine, Commit.sha == alarm.bad_sha).scalar_subquery()
    first = select(Commit.position).where(mine, Commit.sha == alarm.good_sha).scalar_subquery()
    between = (Commit.position <= last, Commit.position > first) if alarm.good_sha else (Commit.sha == alarm.bad_sha,)
    rows = select(Commit).where(mine, *between).order_by(Commit.position.desc()).limit(10 * MOST_SUSPECTS)
    return [
        Suspect(sha=row.sha, number=row.number, author=row.author, subject=row.subject)
        for row in await tx.scalars(rows)
    ]
