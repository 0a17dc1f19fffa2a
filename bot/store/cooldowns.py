"""Cool-downs of offers, shared by all leases: one stock-out answers for every request that would ask the same."""

from collections.abc import Mapping

from sqlalchemy import Executable, delete, select

from bot.core.placement import cool_s
from bot.store.database import Database, Transaction, insert_into
from bot.store.tables import Cooldown


async def cooling(tx: Transaction) -> Mapping[str, float]:
    """The end of each scope's cool-down, also of those that have ended."""
    return {row.scope: row.until for row in await tx.scalars(select(Cooldown))}


async def cool(database: Database, tx: Transaction, scope: str, now: float, sentence: str) -> Executable:
    """The statement that leaves a scope alone, longer for every refusal in a row."""
    kept = await tx.get(Cooldown, scope)
    # refusals of the same moment are one: many leases may have asked at once
    again = kept is not None and now >= kept.until
    times = (kept.times if kept else 0) + (1 if again or kept is None else 0)
    values = {"until": now + cool_s(times), "times": times, "sentence": sentence}
    statement = insert_into(database, Cooldown).values(scope=scope, **values)
    return statement.on_conflict_do_update(index_elements=[Cooldown.scope], set_=values)


def warmed(scopes: tuple[str, ...]) -> Executable:
    """The statement that forgets refusals of scopes that have just given a machine."""
    return delete(Cooldown).where(Cooldown.scope.in_(scopes))
