"""Messages to GitHub: what shall be shown, by a key that makes each of them exist once."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Executable, and_, case, or_, update

from bot.store.codec import dump
from bot.store.database import Database, insert_into
from bot.store.tables import Message


def show(
    database: Database,
    key: str,
    wanted: Mapping[str, Any],
    *,
    now: float,
    due_at: float | None = None,
    **place: Any,
) -> Executable:
    """Make `wanted` what GitHub shall show under `key`.

    `place` (kind, repository_id, number, request_id) is used when the message is new. A message that GitHub already
    shows becomes pending again at `due_at` (now by default); one that was dropped stays so.
    """
    insert = insert_into(database, Message).values(
        id=key, state="pending", due_at=now, poked=False, attempts=0, created_at=now, wanted=dump(wanted), **place
    )
    again = case((Message.state == "dropped", "dropped"), else_="pending")
    at = now if due_at is None else due_at
    # what already waits is not put off by what comes after it: a row that changes often would never be shown
    waits = or_(Message.state == "dropped", and_(Message.state == "pending", Message.due_at < at))
    earliest = case((waits, Message.due_at), else_=at)
    return insert.on_conflict_do_update(
        index_elements=["id"],
        set_={"wanted": dump(wanted), "state": again, "due_at": earliest},
        where=Message.wanted != dump(wanted),
    )


def drop_unsent(request_id: str, kind: str) -> Executable:
    """Forget a message that was not shown yet."""
    return (
        update(Message)
        .where(Message.request_id == request_id, Message.kind == kind, Message.state == "pending")
        .values(state="dropped", due_at=None)
    )
