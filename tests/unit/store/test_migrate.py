"""Migrations: they make exactly the tables that the code knows, and may be run at every start."""

from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, insert, select

from bot.store.database import Database
from bot.store.migrate import migrate
from bot.store.tables import Base, Host, Repository


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
