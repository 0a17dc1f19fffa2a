"""Incidents, by the reference that public texts show."""

from collections.abc import Sequence

from sqlalchemy import or_, select

from bot.store.database import Transaction
from bot.store.tables import Incident


async def incidents_of(tx: Transaction, word: str) -> Sequence[Incident]:
    """The incident of a reference, or those of the row that an id names; newest first, 20 at most."""
    named = or_(Incident.id == word, Incident.where.contains(word, autoescape=True))
    rows = await tx.scalars(select(Incident).where(named).order_by(Incident.happened_at.desc()).limit(20))
    return rows.all()


async def incidents_since(tx: Transaction, since: float) -> Sequence[Incident]:
    """Those of the last time, newest first, 100 at most."""
    rows = await tx.scalars(
        select(Incident).where(Incident.happened_at >= since).order_by(Incident.happened_at.desc()).limit(100)
    )
    return rows.all()
