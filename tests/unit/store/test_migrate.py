"""Migrations: they make exactly the tables that the code knows, and may be run at every start."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, Table, Text, insert, select

from bot.measure.outside import Outside
from bot.store.database import Database
from bot.store.migrate import config_of, migrate
from bot.store.records import environment_of, outside_of
from bot.store.tables import Base, Host, Lease, Machine, Repository, Request, Run


async def test_the_migrations_make_the_tables_of_the_code(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    await migrate(database)

    def differences(connection: Connection) -> list[Any]:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))

    async with database.engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await database.close()


async def test_migrating_again_keeps_what_is_there(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    await migrate(database)
    row = {"id": 7, "full_name": "acme/vision", "private": False, "default_branch": "main", "installation_id": 1}
    async with database.write() as tx:
        await tx.execute(insert(Repository).values(**row))
        await tx.execute(insert(Host).values(id="h1", name="max-1", labels='["xpu"]', quarantined="2 device faults"))
    await migrate(database)
    async with database.read() as tx:
        assert (await tx.scalars(select(Repository.full_name))).all() == ["acme/vision"]
        (host,) = await tx.scalars(select(Host))
        assert (host.name, host.state, host.quarantined, host.faults) == ("max-1", "free", "2 device faults", 0)
    await database.close()


async def test_what_was_spent_and_reserved_before_there_were_costs(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    async with database.engine.begin() as connection:
        await connection.run_sync(lambda sync: command.upgrade(config_of(sync), "0005"))
        await connection.run_sync(_row, "requests", id="r")
        for lease, state in (("open", "running"), ("final", "done")):
            planned = '{"estimate_usd": 9.5}'
            await connection.run_sync(_row, "leases", id=lease, request_id="r", state=state, planned=planned)
        for machine, gone_at in (("there", None), ("settled", 7300.0)):
            billed = {"up_at": 100.0, "gone_at": gone_at, "price_usd_per_hour": 2.5}
            await connection.run_sync(_row, "machines", id=machine, lease_id="open", **billed)
    await migrate(database)
    async with database.read() as tx:
        reserved = {lease.id: lease.reserved_usd for lease in await tx.scalars(select(Lease))}
        cost = {machine.id: machine.cost_usd for machine in await tx.scalars(select(Machine))}
        assert reserved == {"open": 9.5, "final": 0.0}
        assert cost == {"there": 0.0, "settled": 5.0}
        assert (await tx.scalars(select(Request.estimate_usd))).all() == [19.0]
    await database.close()


async def test_runs_from_before_agents_told_more(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    async with database.engine.begin() as connection:
        await connection.run_sync(lambda sync: command.upgrade(config_of(sync), "0011"))
        await connection.run_sync(_row, "requests", id="r")
        await connection.run_sync(_row, "leases", id="l", request_id="r")
        await connection.run_sync(_row, "runs", id="x", lease_id="l", state="done", seconds=20.0, exit_status=0)
    await migrate(database)
    async with database.read() as tx:
        (run,) = await tx.scalars(select(Run))
        assert outside_of(run) == Outside(seconds=20.0, exit_status=0, passed=True)
        assert environment_of(run) is None
    await database.close()


def _row(connection: Connection, name: str, **values: Any) -> None:
    """A row of a table as the database has it now; what has to be there and is not given is empty or 0."""
    found = Table(name, MetaData(), autoload_with=connection)
    empty = {each.name: "" if isinstance(each.type, Text) else 0 for each in found.columns if not each.nullable}
    connection.execute(insert(found).values({**empty, **values}))
