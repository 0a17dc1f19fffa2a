"""Claims on rows: one owner at a time, taken over when the owner dies, and no nudge is lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select, update

from bot.core.lifecycle import LIFECYCLES, legal, living
from bot.store.database import Database
from bot.store.migrate import migrate
from bot.store.rows import CLAIM_S, Change, claim, poke, release, save
from bot.store.tables import Delivery

STATES = ("new",)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    await migrate(made)
    yield made
    await made.close()


async def _add(database: Database, name: str, due_at: float | None = 0.0) -> None:
    values = {"id": name, "state": "new", "due_at": due_at, "happened": name, "event": "ping", "body": "{}"}
    async with database.write() as tx:
        await tx.execute(insert(Delivery).values(received_at=0.0, **values))


async def test_a_row_has_one_owner(database: Database) -> None:
    await _add(database, "a")
    claims = await asyncio.gather(*(claim(database, Delivery, STATES, f"w{at}", 10.0) for at in range(20)))
    assert len([row for row in claims if row is not None]) == 1


async def test_the_claim_of_a_dead_owner_runs_out(database: Database) -> None:
    await _add(database, "a")
    first = await claim(database, Delivery, STATES, "w1", 10.0)
    assert first is not None
    assert await claim(database, Delivery, STATES, "w2", 10.0 + CLAIM_S - 1) is None
    second = await claim(database, Delivery, STATES, "w2", 10.0 + CLAIM_S + 1)
    assert second is not None
    assert second.attempts == 2
    # the first one comes back to life, and may not write any more
    assert not await save(database, first, Change(state="done"))
    assert await save(database, second, Change(state="done"))


async def test_a_nudge_during_a_step_is_not_lost(database: Database) -> None:
    await _add(database, "a")
    row = await claim(database, Delivery, STATES, "w1", 10.0)
    assert row is not None
    async with database.write() as tx:
        await tx.execute(poke(Delivery, Delivery.id == "a"))
    assert await save(database, row, Change(state="new", due_at=1000.0))
    again = await claim(database, Delivery, STATES, "w2", 11.0)
    assert again is not None
    assert not again.poked


async def test_rows_that_sleep_are_left_alone(database: Database) -> None:
    await _add(database, "later", 100.0)
    await _add(database, "never", None)
    assert await claim(database, Delivery, STATES, "w1", 99.0) is None
    row = await claim(database, Delivery, STATES, "w1", 100.0)
    assert row is not None
    await release(database, row, 200.0, "ref")
    assert await claim(database, Delivery, STATES, "w1", 150.0) is None
    async with database.read() as tx:
        assert (await tx.scalar(select(Delivery.error).where(Delivery.id == "later"))) == "ref"


async def test_what_a_step_decides_is_written_together_or_not_at_all(database: Database) -> None:
    await _add(database, "a")
    await _add(database, "b", None)
    row = await claim(database, Delivery, STATES, "w1", 10.0)
    assert row is not None
    good = update(Delivery).where(Delivery.id == "b").values(error="touched")
    bad = insert(Delivery).values(id="b", state="new", happened="b", event="", body="", received_at=0.0)
    with pytest.raises(Exception, match="UNIQUE"):
        await save(database, row, Change(state="done", writes=(good, bad)))
    async with database.read() as tx:
        found = {each.id: (each.state, each.error) for each in await tx.scalars(select(Delivery))}
    assert found == {"a": ("new", ""), "b": ("new", "")}


@given(st.sampled_from(sorted(LIFECYCLES)), st.lists(st.integers(0, 20), max_size=30))
def test_every_walk_goes_on_or_ends(noun: str, choices: list[int]) -> None:
    states = LIFECYCLES[noun]
    state = next(iter(states))
    for choice in choices:
        if states[state].final:
            assert state not in living(noun)
            break
        after = states[state].after[choice % len(states[state].after)]
        assert legal(noun, state, after)
        state = after


@pytest.mark.parametrize("state", [name for name, each in LIFECYCLES["lease"].items() if not each.final])
def test_a_lease_can_be_cancelled_until_its_numbers_are_read(state: str) -> None:
    assert legal("lease", state, "cancelled") or state == "measuring"
