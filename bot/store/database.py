"""One place that opens the database: SQLite by default, PostgreSQL by URL. Everything else sees transactions only."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, cast

from sqlalchemy import Connection, Select, event, text
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import Insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

Transaction = AsyncSession
# a checkpoint waits for the disk: at 4,000 pages (16 MB) it comes rarely enough for bursts of webhooks
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "busy_timeout=30000",
    "foreign_keys=ON",
    "wal_autocheckpoint=4000",
)


class Database:
    """Read and write transactions on one database URL (`sqlite+aiosqlite:///…` or `postgresql+asyncpg://…`)."""

    def __init__(self, url: str) -> None:
        self.url = url
        # the workers and the web use about so many at once; more are made and closed again, which costs milliseconds
        self.engine = create_async_engine(url, pool_size=16)
        if self.engine.dialect.name == "sqlite":
            _tune_sqlite(self.engine)
        self._writer = self.engine.execution_options(benchbot_writes=True)
        # SQLite has one writer at a time; whoever waits for it there only asks again and again, in no order
        self._turn = asyncio.Lock() if self.engine.dialect.name == "sqlite" else nullcontext()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """A transaction that may write; on SQLite it holds the write lock from its first statement on."""
        # no object is looked at again after an UPDATE of its row, and keeping them equal costs as much as the UPDATE
        options = {"synchronize_session": False}
        new = AsyncSession(self._writer, expire_on_commit=False, execution_options=options)
        async with self._turn, new as session, session.begin():
            yield session

    async def append(self, statement: Insert, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert many rows in a transaction of their own; without a session, which would cost more than the rows.

        The columns hold what the driver takes as it is, and all rows name the same ones.
        """
        if self.engine.dialect.name != "sqlite":
            async with self._writer.begin() as connection:
                await connection.execute(statement, rows)
            return
        compiled = statement.compile(dialect=self.engine.dialect, column_keys=list(rows[0]))
        values = [tuple(row[key] for key in compiled.positiontup or ()) for row in rows]
        async with self._turn, self.engine.connect() as connection:
            # each call of SQLite is a visit to its thread, and a statement of the engine is three of them
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver.execute("BEGIN IMMEDIATE")
            await driver.executemany(compiled.string, values)
            # without a commit the pool rolls back
            await driver.commit()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """A consistent view for reading."""
        async with AsyncSession(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    async def look(self, statement: Select[str], values: Mapping[str, object]) -> str | None:
        """The first value of a query; without a session, which would cost more than the query."""
        async with self.engine.connect() as connection:
            found: str | None = await connection.scalar(statement, values)
            return found

    async def one_by_one(self, tx: Transaction, lock: int) -> None:
        """Until the end of this writing transaction no other one gets past here with the same number.

        SQLite lets only one write at a time anyway.
        """
        if self.engine.dialect.name != "sqlite":
            await tx.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})

    async def close(self) -> None:
        """Close all connections, once those that are in use have come back; that takes at most a few seconds."""
        # one that is still out would come back to a pool that is no more, and nobody would close it
        for _ in range(100):
            if not cast(QueuePool, self.engine.pool).checkedout():
                break
            await asyncio.sleep(0.05)
        await self.engine.dispose()


def insert_into(database: Database, table: type[DeclarativeBase]) -> Insert:
    """An INSERT that may say what happens on a conflict; both databases spell that part alike."""
    if database.engine.dialect.name == "sqlite":
        return sqlite_insert(table)
    return cast(Insert, postgres_insert(table))


def _tune_sqlite(engine: AsyncEngine) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def connect(connection: object, _: ConnectionPoolEntry) -> None:
        # the driver must not begin transactions by itself: a writer has to say IMMEDIATE, or it deadlocks on upgrade
        connection.isolation_level = None  # type: ignore[attr-defined] # the driver's own attribute
        cursor = connection.cursor()  # type: ignore[attr-defined]
        for pragma in PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("benchbot_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
