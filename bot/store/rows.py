"""Claims on rows: who may drive a row now, and how the result of a step is written only by its owner."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Double, Executable, Select, and_, bindparam, or_, select, update

from bot.store.database import Database, Transaction
from bot.store.tables import Controlled

# longer than ten times the slowest outside call; a step is cut at 0.8 of it
CLAIM_S = 120.0

Row = TypeVar("Row", bound=Controlled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a step wants written, all in one transaction: the row's next state, and statements on other rows.

    `due_at` None means: asleep until poked. `values` are further columns of the row itself.
    """

    state: str
    due_at: float | None = None
    values: dict[str, Any] = field(default_factory=dict)
    writes: tuple[Executable, ...] = ()


def poke(table: type[Controlled], *where: ColumnElement[bool]) -> Executable:
    """The statement that makes rows due now, whatever they were waiting for."""
    return update(table).where(*where).values(poked=True)


async def claim(database: Database, table: type[Row], states: tuple[str, ...], token: str, now: float) -> Row | None:
    """Take the row of `table` that has waited longest in one of `states`, or None. Sleeps not; waits not."""
    # most looks find nothing; they must not take SQLite's write lock
    known: Any = table
    look, take = _statements(known, states)
    if await database.look(look, {"now": now}) is None:
        return None
    async with database.write() as tx:
        taken = await tx.scalars(take, {"now": now, "owner": token, "until": now + CLAIM_S})
        row: Row | None = taken.one_or_none()
        return row


@cache
def _statements(table: Any, states: tuple[str, ...]) -> tuple[Select[str], Executable]:
    """Any id that may be driven at the time `now`, and the claim of the first; kept, since bots ask little else."""
    now: ColumnElement[float] = bindparam("now", type_=Double())
    free = or_(table.claim.is_(None), table.claim_until < now)
    due = or_(table.poked, table.due_at <= now, and_(table.claim.is_not(None), table.claim_until < now))
    mine = select(table.id).where(table.state.in_(states), free, due)
    first = mine.order_by(table.due_at, table.id).limit(1).with_for_update(skip_locked=True)
    claimed: dict[str, Any] = {"claim": bindparam("owner"), "claim_until": bindparam("until", type_=Double())}
    take = update(table).where(table.id == first.scalar_subquery())
    return mine.limit(1), take.values(poked=False, attempts=table.attempts + 1, **claimed).returning(table)


async def save(database: Database, row: Controlled, change: Change) -> bool:
    """Write the change if the row is still ours; False (and nothing written) when the claim has passed on."""
    table = type(row)
    async with database.write() as tx:
        mine = await tx.execute(
            update(table)
            .where(table.id == row.id, table.claim == row.claim)
            .values(state=change.state, due_at=change.due_at, claim=None, claim_until=None, attempts=0, error="")
            .values(**change.values)
        )
        if mine.rowcount != 1:  # type: ignore[attr-defined] # a CursorResult, as for every update
            return False
        await write_all(tx, change.writes)
    return True


async def write_all(tx: Transaction, writes: tuple[Executable, ...]) -> None:
    """Execute statements in order."""
    for statement in writes:
        await tx.execute(statement)


async def release(database: Database, row: Controlled, due_at: float, error: str) -> None:
    """Give a row back after a step that failed, to be tried again at `due_at`."""
    table = type(row)
    async with database.write() as tx:
        await tx.execute(
            update(table)
            .where(table.id == row.id, table.claim == row.claim)
            .values(due_at=due_at, claim=None, claim_until=None, error=error)
        )
