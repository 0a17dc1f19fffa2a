"""What a repository remembers: samples along its default branch."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.core.branches import Landed, Walk
from bot.core.fingerprint import Fingerprint, series_id
from bot.core.nouns import Trigger
from bot.measure.metrics import Metric, Sample
from bot.measure.noise import Spread, class_of
from bot.store.database import Database, Transaction
from bot.store.history import WINDOW, Measured, arm, counts, landed, positions_of, remember, window
from bot.store.memory import Schedule
from bot.store.migrate import migrate
from bot.store.neighbours import classes_of

FINGERPRINT = Fingerprint(benchmark="resnet50", scenario="default", init="default", run="train", hardware=("local",))
METRIC = Metric(name="accuracy", tag="accuracy")
SERIES = series_id(7, FINGERPRINT, METRIC)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    await migrate(database)
    yield database
    await database.close()


async def _write(database: Database, statements: list[object]) -> None:
    async with database.write() as tx:
        for statement in statements:
            await tx.execute(statement)  # type: ignore[call-overload]


async def _branch(database: Database, *shas: str, kept_until: int | None = None, begin: int = 0) -> None:
    path = [Landed(sha=sha, parent="", author="maya", subject="", committed_at=0.0) for sha in shas]
    walk = Walk(positions={sha: begin + place for place, sha in enumerate(shas, 1)}, kept_until=kept_until)
    await _write(database, list(landed(database, 7, path, walk)))


async def _measure(database: Database, sha: str, *values: float, machine: str = "m", at: float = 0.0) -> None:
    samples = tuple(Sample(value=v, seed=n, machine=machine, commit=sha) for n, v in enumerate(values, 1))
    measured = Measured(metric=METRIC, samples=samples)
    await _write(database, list(remember(database, 7, FINGERPRINT, [measured], at)))


async def _values(tx: Transaction, until: str = "", limit: int = 50) -> list[float]:
    return [sample.value for sample in await window(tx, 7, SERIES, until, limit=limit)]


async def test_a_window_follows_the_branch_and_not_the_time_of_measuring(database: Database) -> None:
    await _branch(database, "a", "b", "c")
    await _measure(database, "c", 3.0, at=1)
    await _measure(database, "a", 1.0, 1.1, at=2)  # measured later, to fill a gap
    await _measure(database, "b", 2.0, at=3)
    async with database.read() as tx:
        assert await _values(tx) == [1.0, 1.1, 2.0, 3.0]
        assert await _values(tx, until="b") == [1.0, 1.1, 2.0]
        assert await _values(tx, limit=2) == [2.0, 3.0]
        assert await _values(tx, until="unknown") == []
        assert await counts(tx, 7, [SERIES, "other"], "b") == {SERIES: 3}


async def test_the_same_run_twice_is_one_sample(database: Database) -> None:
    await _branch(database, "a")
    await _measure(database, "a", 1.0, 2.0)
    await _measure(database, "a", 1.0, 2.0)
    await _measure(database, "a", 1.5, machine="another")
    async with database.read() as tx:
        assert sorted(await _values(tx)) == [1.0, 1.5, 2.0]


async def test_commits_that_a_forced_push_took_away_do_not_count(database: Database) -> None:
    await _branch(database, "a", "b", "c")
    for sha, value in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        await _measure(database, sha, value)
    await _branch(database, "d", kept_until=1, begin=1)
    async with database.read() as tx:
        assert await positions_of(tx, 7) == {"a": 1, "d": 2}
        assert await _values(tx) == [1.0]
    # and back again
    await _branch(database, "b", "c", kept_until=1, begin=1)
    async with database.read() as tx:
        assert await _values(tx) == [1.0, 2.0, 3.0]


async def test_other_repositories_have_the_same_commits(database: Database) -> None:
    """A fork holds the same shas; ids keep them apart."""
    await _branch(database, "a")
    await _measure(database, "a", 1.0)
    async with database.read() as tx:
        assert await window(tx, 8, series_id(8, FINGERPRINT, METRIC)) == ()
        assert await positions_of(tx, 8) == {}


async def test_what_other_series_say_of_noise_is_that_of_the_branch_and_of_their_class(database: Database) -> None:
    await _branch(database, "a", "b")
    accuracy = Metric(name="top1", tag="top1", noise=0.2)
    others = (replace(accuracy, name="fixed", noise=0.0), replace(accuracy, name="time", scale="log"))
    for sha, values in (("a", (1.0, 2.0, 3.0)), ("b", (7.0, 8.0, 9.0)), ("of a pull request", (0.0, 100.0, 200.0))):
        samples = tuple(Sample(value=v, seed=n, machine="m", commit=sha) for n, v in enumerate(values, 1))
        measured = [Measured(metric=metric, samples=samples) for metric in (accuracy, *others)]
        await _write(database, list(remember(database, 7, FINGERPRINT, measured, 0.0)))
    async with database.read() as tx:
        own = series_id(7, FINGERPRINT, accuracy)
        # two degrees of freedom of each commit are too few to leave it at that: neighbours, but for the widest step
        assert await classes_of(tx, 7, [accuracy]) == {class_of(accuracy): {own: Spread(pytest.approx(4 / 3), 8 / 3)}}
        assert await classes_of(tx, 8, [accuracy]) == {}
        assert await classes_of(tx, 7, []) == {}


async def test_noise_is_learned_from_the_newest_samples(database: Database) -> None:
    shas = [f"c{at}" for at in range(WINDOW)]
    await _branch(database, *shas)
    for at, sha in enumerate(shas):
        # loud at first, and quiet in what is looked at: two seeds of each of the last commits
        await _measure(database, sha, 0.0, 100.0 if at < WINDOW // 2 else 2.0)
    async with database.read() as tx:
        ((spread,),) = [tuple(of.values()) for of in (await classes_of(tx, 7, [METRIC])).values()]
        assert spread == Spread(squares=2.0 * WINDOW / 2, dof=WINDOW / 2)


async def test_schedules_keep_their_next_time_until_their_own_is_changed(database: Database) -> None:
    def nightly(cron: str = "30 2 * * *", text: str = "all") -> Trigger:
        return Trigger(name="nightly", text=text, cron=cron)

    await _write(database, list(arm(database, 7, {"nightly": (nightly(), 100.0)})))
    await _write(database, list(arm(database, 7, {"nightly": (nightly(text="resnet50"), 200.0)})))
    async with database.read() as tx:
        (row,) = (await tx.execute(Schedule.__table__.select())).all()
        assert (row.state, row.due_at, row.text) == ("armed", 100.0, "resnet50")
    await _write(database, list(arm(database, 7, {"nightly": (nightly(cron="0 3 * * *"), 300.0)})))
    async with database.read() as tx:
        (row,) = (await tx.execute(Schedule.__table__.select())).all()
        assert row.due_at == 300.0
    await _write(database, list(arm(database, 7, {})))
    await _write(database, list(arm(database, 8, {"nightly": (nightly(), 50.0)})))
    async with database.read() as tx:
        rows = (await tx.execute(Schedule.__table__.select())).all()
        assert {(row.repository_id, row.state, row.due_at) for row in rows} == {(7, "gone", None), (8, "armed", 50.0)}
    # one that comes back is due as a new one
    await _write(database, list(arm(database, 7, {"nightly": (nightly(cron="0 3 * * *"), 400.0)})))
    async with database.read() as tx:
        assert (await tx.get_one(Schedule, "7:nightly")).due_at == 400.0
