"""What machines have cost, by month and by who and what for; public repositories only, as on every page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, select

from bot.core.money import Spent
from bot.store.database import Transaction
from bot.store.ledger import holding
from bot.store.tables import Lease, Machine, Request

SHARES = ("repository", "person", "hardware")


@dataclass(frozen=True, slots=True)
class RequestCost:
    """A request with what its machines have cost, and what is still reserved for it."""

    request: Request
    spent_usd: float
    reserved_usd: float


async def by_month(tx: Transaction, months: Sequence[tuple[str, float]], end: float) -> tuple[Spent, ...]:
    """What was settled in each month. `months` are names and beginnings, oldest first; the last one goes to `end`."""
    name = case(*((Machine.gone_at >= begin, label) for label, begin in reversed(months)), else_="")
    found = await tx.execute(_spent(name, months[0][1], end).group_by(name))
    return _read(found.all())


async def by_share(tx: Transaction, share: str, begin: float, end: float) -> tuple[Spent, ...]:
    """What was settled in a time, by repository, person or hardware, the dearest first."""
    key, name = {
        "repository": (Request.repository_id, func.max(Request.full_name)),
        "person": (Request.requester_id, func.max(Request.requester)),
        "hardware": (Machine.hardware, Machine.hardware),
    }[share]
    found = await tx.execute(_spent(name, begin, end).group_by(key))
    return tuple(sorted(_read(found.all()), key=lambda each: (-each.usd, each.name)))


async def newest(tx: Transaction, most: int) -> tuple[RequestCost, ...]:
    """The newest requests."""
    public = select(Request).where(Request.private.is_(False), Request.number > 0)
    requests = (await tx.scalars(public.order_by(Request.created_at.desc(), Request.id).limit(most))).all()
    mine = Lease.request_id.in_([request.id for request in requests])
    spent = await _sums(tx, Lease.cost_usd, mine)
    reserved = await _sums(tx, Lease.reserved_usd, mine, holding())
    return tuple(RequestCost(one, spent.get(one.id, 0.0), reserved.get(one.id, 0.0)) for one in requests)


async def _sums(tx: Transaction, column: Any, *where: ColumnElement[bool]) -> dict[str, float]:
    found = await tx.execute(select(Lease.request_id, func.sum(column)).where(*where).group_by(Lease.request_id))
    return {request: amount or 0.0 for request, amount in found}


def _spent(name: Any, begin: float, end: float) -> Select[Any]:
    """Name, US dollars, seconds and number of machines that were gone in a time."""
    seconds = Machine.gone_at - func.coalesce(Machine.up_at, Machine.gone_at)
    sums = select(name, func.sum(Machine.cost_usd), func.sum(seconds), func.count())
    joined = sums.join(Lease, Machine.lease_id == Lease.id).join(Request, Lease.request_id == Request.id)
    there = (Machine.gone_at >= begin, Machine.gone_at < end, Machine.up_at.is_not(None) | (Machine.cost_usd > 0))
    return joined.where(Request.private.is_(False), *there)


def _read(rows: Sequence[Any]) -> tuple[Spent, ...]:
    return tuple(Spent(name=name, usd=usd or 0.0, seconds=s or 0.0, machines=count) for name, usd, s, count in rows)
