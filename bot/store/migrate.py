"""Brings a database to the tables of this version. Forward only: a backup is the way back."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from bot.store.database import Database

# any number that nothing else in the database uses: replicas that start together migrate one after the other
LOCK = 0x62656E63


def config_of(connection: Connection) -> Config:
    """Alembic's configuration for our migrations on an open connection."""
    config = Config()
    config.set_main_option("script_location", str(resources.files("bot.store") / "migrations"))
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: Connection) -> None:
    command.upgrade(config_of(connection), "head")


def differences(connection: Connection) -> None:
    """Raises alembic's CommandError when the tables in code and in the database differ."""
    command.check(config_of(connection))


async def revisions(database: Database) -> tuple[str | None, Sequence[str]]:
    """The revision of the database's tables (None: it has none), and those that this version knows, newest first."""

    def look(connection: Connection) -> tuple[str | None, Sequence[str]]:
        known = ScriptDirectory.from_config(config_of(connection)).walk_revisions()
        return MigrationContext.configure(connection).get_current_revision(), [one.revision for one in known]

    async with database.engine.connect() as connection:
        return await connection.run_sync(look)


async def migrate(database: Database) -> None:
    """Run what has not run yet, in one transaction. Safe to call at every start."""
    async with database.engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if sqlite:
            # a rebuilt table must not take rows with it that refer to it; the pragma works only outside transactions
            raw: Any = (await connection.get_raw_connection()).driver_connection
            await raw.execute("PRAGMA foreign_keys=OFF")
        else:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        await connection.run_sync(_upgrade)
        if sqlite:
            broken = (await connection.exec_driver_sql("PRAGMA foreign_key_check")).fetchall()
            if broken:
                await connection.rollback()
                raise RuntimeError(f"the migration would break {len(broken)} references; nothing was changed")
        await connection.commit()
        if sqlite:
            await (await connection.get_raw_connection()).driver_connection.execute("PRAGMA foreign_keys=ON")  # type: ignore[union-attr]
