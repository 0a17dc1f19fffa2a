"""Many rows at once: all of them or none."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from bot.store.database import Database, insert_into
from bot.store.migrate import migrate
from bot.store.tables import Delivery


def delivery(guid: str, **more: Any) -> dict[str, Any]:
    common = {"state": "new", "want": "", "due_at": 1.0, "poked": False, "attempts": 0, "error": "", "received_at": 1.0}
    return {"id": guid, **common, "happened": guid, "event": "issue_comment", "body": "{}", **more}


async def test_a_row_that_cannot_be_kept_keeps_none(tmp_path: Path) -> None:
    """And the next ones find nothing in their way."""
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/rows.sqlite")
    await migrate(database)
    insert = insert_into(database, Delivery).on_conflict_do_nothing()
    with pytest.raises(sqlite3.IntegrityError):
        await database.append(insert, [delivery("a"), delivery("b", body=None)])
    await database.append(insert, [delivery("c"), delivery("c"), delivery("d")])
    async with database.write() as tx:
        assert await tx.scalar(select(func.count()).select_from(Delivery)) == 2
        kept = await tx.get_one(Delivery, "c")
        assert (kept.poked, kept.due_at, kept.claim) == (False, 1.0, None)
    await database.close()
