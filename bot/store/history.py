"""What a repository remembers, as statements and queries: commits, series and their samples, schedules."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Executable, ScalarSelect, and_, func, select, update

from bot.core.branches import Landed, Walk
from bot.core.fingerprint import Fingerprint, fingerprint_of, series_id
from bot.core.nouns import Call, Plan, PlannedLease, RepoConfig, Trigger
from bot.measure.metrics import Metric, Sample
from bot.store.alarms import Segment, segments
from bot.store.codec import dump
from bot.store.database import Database, Transaction, insert_into
from bot.store.memory import Branch, Commit, SampleRow, Schedule, Series

# a base window is this long at most
WINDOW = 50
ALL = Segment()
# kinds of requests whose leases measure the default branch with nobody's code beside it
REMEMBERED = ("schedule", "release", "push", "backfill", "alarm", "bisect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The values of one metric that one lease has measured of the default branch, with the run of each seed."""

    metric: Metric
    samples: tuple[Sample, ...]


def watch(database: Database, repository_id: int, now: float) -> Executable:
    """Have the default branch looked at; one that is watched already is not touched."""
    values = {"id": str(repository_id), "repository_id": repository_id, "state": "watched", "due_at": now}
    return insert_into(database, Branch).values(**values).on_conflict_do_nothing()


def look_again(database: Database, repository_id: int, now: float) -> Executable:
    """Have the default branch looked at now."""
    values = {"id": str(repository_id), "repository_id": repository_id, "state": "watched", "due_at": now}
    fresh = {"state": "watched", "poked": True}
    return insert_into(database, Branch).values(**values).on_conflict_do_update(index_elements=["id"], set_=fresh)


async def positions_of(tx: Transaction, repository_id: int) -> Mapping[str, int]:
    """The commits that are on the default branch now, with their positions."""
    there = select(Commit.sha, Commit.position).where(
        Commit.repository_id == repository_id, Commit.position.is_not(None)
    )
    return {sha: position for sha, position in (await tx.execute(there)).all() if position is not None}


def landed(database: Database, repository_id: int, path: Sequence[Landed], walk: Walk) -> list[Executable]:
    """Write down what a walk has found."""
    writes: list[Executable] = []
    if walk.kept_until is not None:
        taken = (Commit.repository_id == repository_id, Commit.position > walk.kept_until)
        writes.append(update(Commit).where(*taken).values(position=None))
    for step in path:
        position = walk.positions[step.sha]
        about = {"parent": step.parent, "number": step.number, "author": step.author, "subject": step.subject}
        values = {"repository_id": repository_id, "sha": step.sha, "committed_at": step.committed_at, **about}
        insert = insert_into(database, Commit).values(**values, position=position)
        writes.append(
            insert.on_conflict_do_update(index_elements=["repository_id", "sha"], set_={"position": position})
        )
    return writes


def remember(
    database: Database, repository_id: int, fingerprint: Fingerprint, measured: Iterable[Measured], now: float
) -> list[Executable]:
    """Add samples to their series; the same run twice is one sample."""
    writes: list[Executable] = []
    for one in measured:
        if not one.samples:
            continue
        series = series_id(repository_id, fingerprint, one.metric)
        about = {
            "id": series,
            "repository_id": repository_id,
            "benchmark": fingerprint.benchmark,
            "scenario": fingerprint.scenario,
            "init": fingerprint.init,
            "hardware": fingerprint.hardware[0] if fingerprint.hardware else "",
            "name": one.metric.name,
            "fingerprint": dump(fingerprint),
            "created_at": now,
        }
        fresh = {"metric": dump(one.metric), "last_at": now}
        added = insert_into(database, Series).values(**about, **fresh)
        writes.append(added.on_conflict_do_update(index_elements=["id"], set_=fresh))
        for sample in one.samples:
            values = {"sha": sample.commit, "seed": sample.seed, "machine": sample.machine, "value": sample.value}
            row = insert_into(database, SampleRow).values(series_id=series, measured_at=now, **values)
            writes.append(row.on_conflict_do_nothing())
    return writes


async def window(
    tx: Transaction,
    repository_id: int,
    series: str,
    until: str = "",
    *,
    limit: int = WINDOW,
    segment: Segment = ALL,
) -> tuple[Sample, ...]:
    """The last samples of a series on the default branch, oldest first; up to and with the commit `until`.

    Of a `segment` only what lies in it counts. Nothing where `until` is no commit of the branch.
    """
    rows = (
        select(SampleRow, Commit.position)
        .join(Commit, (Commit.repository_id == repository_id) & (Commit.sha == SampleRow.sha))
        .where(SampleRow.series_id == series, Commit.position.is_not(None))
    )
    for last in filter(None, (until, segment.until)):
        rows = rows.where(Commit.position <= _position(repository_id, last))
    if segment.since:
        rows = rows.where(Commit.position >= _position(repository_id, segment.since))
    newest = rows.order_by(Commit.position.desc(), SampleRow.measured_at.desc(), SampleRow.id.desc()).limit(limit)
    found = [row for row, _ in (await tx.execute(newest)).all()]
    return tuple(Sample(value=row.value, seed=row.seed, machine=row.machine, commit=row.sha) for row in reversed(found))


def _position(repository_id: int, sha: str) -> ScalarSelect[int | None]:
    mine = (Commit.repository_id == repository_id, Commit.sha == sha)
    return select(Commit.position).where(*mine).scalar_subquery()


async def history_of(tx: Transaction, call: Call, lease: PlannedLease) -> Mapping[str, tuple[Sample, ...]]:
    """The samples of a lease's base by the id of their series, oldest first: up to the commit that it compares with, or
    to the one before its head where it compares with what the branch was."""
    config, repository_id = call.config or RepoConfig(), call.pull.repository_id
    if lease.benchmark not in config.benchmarks or not repository_id:
        return {}
    fingerprint = fingerprint_of(config, lease, call.hardware.get(lease.hardware))
    until = call.base_sha
    if not until:
        mine = (Commit.repository_id == repository_id, Commit.sha == call.head_sha)
        until = await tx.scalar(select(Commit.parent).where(*mine)) or ""
    if not until:
        return {}
    # all that were measured so: a pattern is one metric for each of its tags
    known = select(Series.id).where(Series.repository_id == repository_id, Series.benchmark == lease.benchmark)
    names = (await tx.scalars(known.where(Series.fingerprint == dump(fingerprint)))).all()
    bounds = await segments(tx, repository_id, names)
    return {name: await window(tx, repository_id, name, until, segment=bounds.get(name, Segment())) for name in names}


async def base_runs(tx: Transaction, call: Call, planned: Plan) -> tuple[int, ...]:
    """For each lease of a plan how many runs of its base the history holds, under the same fingerprint and up to the
    commit that it compares with: as many as the worst known metric that decides has."""
    names: list[tuple[str, ...]] = []
    for lease in planned.leases:
        config = call.config or RepoConfig()
        fingerprint = fingerprint_of(config, lease, call.hardware.get(lease.hardware))
        metrics = [metric for metric in config.benchmarks[lease.benchmark].metrics if metric.better is not None]
        gates = [metric for metric in metrics if metric.gate] or metrics
        names.append(tuple(series_id(call.pull.repository_id, fingerprint, metric) for metric in gates))
    every = sorted({name for each in names for name in each})
    known = await counts(tx, call.pull.repository_id, every, call.base_sha) if every else {}
    return tuple(min((known.get(name, 0) for name in each), default=0) for each in names)


async def counts(tx: Transaction, repository_id: int, series: Sequence[str], until: str) -> Mapping[str, int]:
    """How many samples each series has on the default branch up to a commit."""
    rows = (
        select(SampleRow.series_id, func.count())
        .join(Commit, (Commit.repository_id == repository_id) & (Commit.sha == SampleRow.sha))
        .where(SampleRow.series_id.in_(series), Commit.position <= _position(repository_id, until))
        .group_by(SampleRow.series_id)
    )
    return {row[0]: row[1] for row in await tx.execute(rows)}


def arm(database: Database, repository_id: int, triggers: Mapping[str, tuple[Trigger, float]]) -> list[Executable]:
    """The schedules of a configuration, each with the time when it is due next; others of the repository end.

    One whose time has not changed keeps its next time, so that a run that was missed is made up for.
    """
    gone = (Schedule.repository_id == repository_id, Schedule.name.not_in(list(triggers)))
    writes: list[Executable] = [update(Schedule).where(*gone).values(state="gone", due_at=None)]
    for name, (trigger, due_at) in triggers.items():
        about = {"cron": trigger.cron, "timezone": trigger.timezone, "text": trigger.text, "state": "armed"}
        key = f"{repository_id}:{name}"
        values = {"id": key, "repository_id": repository_id, "name": name, "due_at": due_at}
        same = (Schedule.state == "armed", Schedule.cron == trigger.cron, Schedule.timezone == trigger.timezone)
        writes.append(insert_into(database, Schedule).values(**values, **about).on_conflict_do_nothing())
        writes.append(update(Schedule).where(Schedule.id == key, ~and_(*same)).values(due_at=due_at))
        writes.append(update(Schedule).where(Schedule.id == key).values(**about))
    return writes
