"""Money told from rows: what counts as spent, what as reserved, and that requests are let in one after the other."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, update

from bot.core.calls import plan_of
from bot.core.money import Limits
from bot.core.nouns import Call, Plan
from bot.store.costs import by_month, by_share, newest
from bot.store.database import Database
from bot.store.ledger import accounts, admit
from bot.store.migrate import migrate
from bot.store.requests import new_request
from bot.store.tables import Lease, Machine, Request
from tests.unit.core.making import call, command, person

NOON = datetime(2026, 12, 15, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
ALL = Limits(pull_usd=100, person_usd_per_day=100, repository_usd_per_month=100, month_usd=100)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    await migrate(made)
    yield made
    await made.close()


def _call(*, number: int = 7, repository: int = 5, who: int = 1) -> Call:
    """35.10 USD at most."""
    given = call(command("run", "resnet50"), resolved=("resnet50",), sender=person(id=who), limits=ALL)
    return replace(given, pull=replace(given.pull, number=number, repository_id=repository))


async def _asked(database: Database, name: str, given: Call, **values: Any) -> Request:
    async with database.write() as tx:
        await tx.execute(new_request(database, name, name, "command", given, NOON))
        if values:
            await tx.execute(update(Request).where(Request.id == name).values(**values))
        return await tx.get_one(Request, name)


async def _leased(database: Database, request: str, state: str, machine: str, **money: float) -> None:
    """A lease of a request with one machine; `gone_at` and `cost_usd` are the machine's."""
    gone_at, cost_usd = money.get("gone_at"), money.get("cost_usd", 0.0)
    about = {"planned": "{}", "hardware": "a100x1", "created_at": NOON, "notes": "[]", "position": 0}
    lease = {"id": f"{request}-{machine}", "state": state, "request_id": request, "reserved_usd": 35.1}
    up = {"up_at": gone_at - 3600 if gone_at else NOON, "gone_at": gone_at, "cost_usd": cost_usd}
    there = {"id": f"m-{request}-{machine}", "state": machine, "lease_id": lease["id"], "backend": "gce"}
    place = {"hardware": "a100x1", "token": "", "trusted": True, "created_at": NOON, "deadline_at": NOON}
    async with database.write() as tx:
        await tx.execute(insert(Lease).values(**lease, **about, cost_usd=cost_usd))
        await tx.execute(insert(Machine).values(**there, **place, **up))


async def _stand(database: Database, given: Call, besides: str = "") -> dict[str, tuple[float, float]]:
    async with database.read() as tx:
        found = await accounts(tx, given, NOON, besides=besides)
    return {each.cap.name: (each.spent_usd, round(each.reserved_usd, 2)) for each in found}


async def test_spent_in_its_period_and_by_whom(database: Database) -> None:
    await _asked(database, "mine", _call())
    await _leased(database, "mine", "done", "gone", gone_at=NOON - 60, cost_usd=1.0)
    await _asked(database, "yesterday", _call())
    await _leased(database, "yesterday", "done", "gone", gone_at=NOON - DAY, cost_usd=2.0)
    await _asked(database, "last-month", _call())
    await _leased(database, "last-month", "done", "gone", gone_at=NOON - 20 * DAY, cost_usd=4.0)
    await _asked(database, "elsewhere", _call(number=8, repository=6, who=2))
    await _leased(database, "elsewhere", "done", "gone", gone_at=NOON - 60, cost_usd=8.0)
    assert await _stand(database, _call()) == {
        "pull_usd": (7.0, 0.0),
        "person_usd_per_day": (1.0, 0.0),
        "repository_usd_per_month": (3.0, 0.0),
        "month_usd": (11.0, 0.0),
    }
    async with database.read() as tx:
        assert await accounts(tx, replace(_call(), limits=Limits(budget_usd=1, confirm_usd=1)), NOON) == ()


@pytest.mark.parametrize(
    ("state", "machine", "reserved"),
    [
        ("queued", "gone", 35.1),  # its first machine was lost; another one will come
        ("running", "up", 35.1),
        ("done", "closing", 35.1),  # the numbers are there, the machine still is
        ("done", "gone", 0.0),
        ("cancelled", "clearing", 35.1),
        ("failed", "gone", 0.0),
    ],
)
async def test_reserved_until_the_lease_is_final_and_its_machines_are_gone(
    database: Database, state: str, machine: str, reserved: float
) -> None:
    await _asked(database, "one", _call(), state="running", admitted_at=NOON, estimate_usd=35.1)
    await _leased(database, "one", state, machine)
    assert (await _stand(database, _call()))["month_usd"] == (0.0, reserved)


async def test_what_was_let_in_is_reserved_before_it_has_leases(database: Database) -> None:
    planned = plan_of(_call())
    assert isinstance(planned, Plan)
    one, two, three = [await _asked(database, name, _call()) for name in ("one", "two", "three")]
    assert await admit(database, one, _call(), planned, NOON) is None
    assert (await _stand(database, _call()))["month_usd"] == (0.0, 35.1)
    assert (await _stand(database, _call(), besides="one"))["month_usd"] == (0.0, 0.0)
    # asked again after a crash, it is not in its own way
    assert await admit(database, one, _call(), planned, NOON) is None
    answers = await asyncio.gather(*(admit(database, each, _call(), planned, NOON) for each in (two, three)))
    assert sorted(answer is None for answer in answers) == [False, True]
    assert (await _stand(database, _call()))["month_usd"] == (0.0, 70.2)
    async with database.write() as tx:
        await tx.execute(update(Request).values(state="reporting"))
    assert (await _stand(database, _call()))["month_usd"] == (0.0, 0.0)


async def test_sums_for_the_page(database: Database) -> None:
    await _asked(database, "mine", _call())
    await _leased(database, "mine", "done", "gone", gone_at=NOON, cost_usd=1.0)
    await _asked(database, "late", _call(who=2))
    await _leased(database, "late", "running", "up")
    await _asked(database, "hidden", _call(number=8), private=True)
    await _leased(database, "hidden", "done", "gone", gone_at=NOON, cost_usd=64.0)
    await _asked(database, "old", _call())
    await _leased(database, "old", "done", "gone", gone_at=NOON - 20 * DAY, cost_usd=2.0)
    november, december = (datetime(2026, month, 1, tzinfo=UTC).timestamp() for month in (11, 12))
    async with database.read() as tx:
        months = await by_month(tx, (("2026-11", november), ("2026-12", december)), NOON + DAY)
        (person_,) = await by_share(tx, "person", december, NOON + DAY)
        (hardware,) = await by_share(tx, "hardware", november, NOON + DAY)
        rows = {row.request.id: (row.spent_usd, row.reserved_usd) for row in await newest(tx, 10)}
    assert sorted((month.name, month.usd, month.machines) for month in months) == [
        ("2026-11", 2.0, 1),
        ("2026-12", 1.0, 1),
    ]
    assert (person_.name, person_.usd, person_.seconds) == ("user1", 1.0, 3600.0)
    assert (hardware.name, hardware.usd) == ("a100x1", 3.0)
    assert rows == {"mine": (1.0, 0.0), "late": (0.0, 35.1), "old": (2.0, 0.0)}
