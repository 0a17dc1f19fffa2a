"""What was spent and what is reserved, told from the rows of requests, leases and machines: no sum is kept anywhere.

A reservation is the estimate of a request that was let in, then of each of its leases until that is final and its
machines are gone; from then on what the machines have cost stands in its place.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Executable, func, or_, select, update

from bot.core.budget import CAPS, Account, Cap, since
from bot.core.calls import within_caps
from bot.core.lifecycle import living
from bot.core.nouns import Call, Plan, Refusal
from bot.store.database import Database, Transaction
from bot.store.tables import Lease, Machine, Request

# requests are let in one after the other: two that fit alone may not fit together
_LOCK = 0x636F7374


def holding() -> ColumnElement[bool]:
    """Leases whose reservation counts: not final, or with a machine that is not gone."""
    with_machine = select(Machine.lease_id).where(Machine.state.in_(living("machine")))
    return or_(Lease.state.in_(living("lease")), Lease.id.in_(with_machine))


async def accounts(tx: Transaction, call: Call, now: float, *, besides: str = "") -> tuple[Account, ...]:
    """How the limits stand that a call falls under, those without a value left out; `besides` is its own request."""
    found = []
    for cap in CAPS:
        limit: float | None = getattr(call.limits, cap.name)
        if limit is None:
            continue
        mine = _under(cap, call)
        spent = select(func.sum(Machine.cost_usd)).join(Lease, Machine.lease_id == Lease.id)
        spent = spent.join(Request, Lease.request_id == Request.id)
        spent_usd = await tx.scalar(spent.where(Machine.gone_at >= since(cap.period, now), *mine))
        held = select(func.sum(Lease.reserved_usd)).join(Request, Lease.request_id == Request.id)
        held_usd = await tx.scalar(held.where(holding(), Request.id != besides, *mine))
        let_in = (Request.state == "accepted", Request.admitted_at.is_not(None), Request.id != besides)
        new_usd = await tx.scalar(select(func.sum(Request.estimate_usd)).where(*let_in, *mine))
        reserved_usd = (held_usd or 0.0) + (new_usd or 0.0)
        found.append(Account(cap=cap, limit_usd=limit, spent_usd=spent_usd or 0.0, reserved_usd=reserved_usd))
    return tuple(found)


async def extend(
    database: Database, request: Request, call: Call, planned: Plan, rows: Sequence[Executable], now: float
) -> Refusal | None:
    """Add leases to a request that goes on, unless the limits do not let them in. The caller sees that it does so once.

    `rows` are the statements that make them.
    """
    async with database.write() as tx:
        await database.one_by_one(tx, _LOCK)
        refusal = within_caps(call, planned, await accounts(tx, call, now), now)
        for row in () if refusal else rows:
            await tx.execute(row)
        return refusal


async def admit(database: Database, request: Request, call: Call, planned: Plan, now: float) -> Refusal | None:
    """Reserve what the plan may cost, or say why that is too much now. Asking again changes nothing."""
    async with database.write() as tx:
        await database.one_by_one(tx, _LOCK)
        refusal = within_caps(call, planned, await accounts(tx, call, now, besides=request.id), now)
        if refusal is None:
            let_in: dict[str, Any] = {"admitted_at": now, "estimate_usd": planned.estimate_usd}
            await tx.execute(update(Request).where(Request.id == request.id).values(let_in))
        return refusal


def _under(cap: Cap, call: Call) -> tuple[ColumnElement[bool], ...]:
    repository = Request.repository_id == call.pull.repository_id
    return {
        "pull_usd": (repository, Request.number == call.pull.number),
        "person_usd_per_day": (Request.requester_id == call.sender.id,),
        "repository_usd_per_month": (repository,),
        "month_usd": (),
    }[cap.name]
