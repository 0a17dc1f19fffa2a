"""Runs that pages show: rows of one request as they stand while it trains, and where its files lie."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from time import time

from sqlalchemy import insert, update

from benchmarks.fleet import call_for
from bot.core.calls import plan_of
from bot.core.nouns import Hardware, Plan
from bot.settings import Settings, load_settings
from bot.store.codec import dump
from bot.store.database import Database
from bot.store.migrate import migrate
from bot.store.requests import new_request
from bot.store.tables import Lease, Request, Run
from runners.protocol import LOG_FOLDER

REQUEST = "request"


async def rows_of_runs(environment: Mapping[str, str], count: int) -> tuple[str, ...]:
    """Make the database of a bot with one request, whose lease has so many running runs; their ids."""
    settings = _settings(environment)
    settings.data_folder.mkdir(mode=0o700, exist_ok=True)
    database = Database(settings.database_url)
    call, now = call_for(Hardware(name="local", backend="local"), 1), time()
    planned = plan_of(call)
    assert isinstance(planned, Plan)
    lease = planned.leases[0]
    try:
        await migrate(database)
        async with database.write() as tx:
            await tx.execute(new_request(database, REQUEST, REQUEST, "command", call, now))
            await tx.execute(update(Request).values(state="running", due_at=None))
            row = {"id": "lease", "state": "running", "request_id": REQUEST, "position": 0, "created_at": now}
            await tx.execute(insert(Lease), [row | {"planned": dump(lease), "hardware": "local"}])
            first = asdict(lease.runs[0]) | {"lease_id": "lease", "commit": call.head_sha, "state": "running"}
            runs = [first | {"id": f"run{at}", "position": at, "started_at": now} for at in range(count)]
            await tx.execute(insert(Run), runs)
    finally:
        await database.close()
    return tuple(f"run{at}" for at in range(count))


def logs_of(environment: Mapping[str, str], run: str) -> Path:
    """The log folder of a run."""
    return _settings(environment).data_folder / "artifacts" / run / LOG_FOLDER


def _settings(environment: Mapping[str, str]) -> Settings:
    settings = load_settings(environment, "")
    assert isinstance(settings, Settings)
    return settings
