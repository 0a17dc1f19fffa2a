"""Requests: how one comes to be, and how others find it."""

from collections.abc import Sequence

from sqlalchemy import Executable, select

from bot.core.nouns import Call
from bot.store.codec import dump
from bot.store.database import Database, Transaction, insert_into
from bot.store.tables import Lease, Request


def new_request(database: Database, request_id: str, trigger: str, kind: str, call: Call, now: float) -> Executable:
    """The row of an accepted call; a trigger that has made one already makes no other.

    `kind` is command, approval, button, local or one of `store.history.REMEMBERED`.
    """
    values = {
        "id": request_id,
        "trigger": trigger,
        "kind": kind,
        "state": "accepted",
        "due_at": now,
        "repository_id": call.pull.repository_id,
        "full_name": call.pull.full_name,
        "private": call.pull.private,
        "number": call.pull.number,
        "requester": call.sender.login,
        "requester_id": call.sender.id,
        "command": call.command.text,
        "call": dump(call),
        "trusted": call.pull.author.may_write and not call.pull.from_fork,
        "head_sha": call.head_sha,
        "base_sha": call.base_sha,
        "created_at": now,
    }
    return insert_into(database, Request).values(**values).on_conflict_do_nothing()


async def leases_of_pull(tx: Transaction, repository_id: int, number: int) -> Sequence[tuple[Request, Lease]]:
    """Every lease of a pull request with its request, newest request first."""
    mine = (Request.repository_id == repository_id, Request.number == number)
    rows = select(Request, Lease).join(Lease, Lease.request_id == Request.id).where(*mine)
    found = await tx.execute(rows.order_by(Request.created_at.desc(), Request.id, Lease.position))
    return [(request, lease) for request, lease in found]
