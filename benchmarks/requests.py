"""Requests on the stage of the demo: when they have ended, and what their trainings took themselves."""

import asyncio

from sqlalchemy import select

from bot.cli.demo import Stage, finished
from bot.store.tables import Lease, Request, Run


async def until_finished(on: Stage, count: int) -> None:
    """Returns when so many requests have had their last word."""
    for _ in range(12_000):
        # looking costs some milliseconds of the very process that is measured
        await asyncio.sleep(0.1)
        if len(await finished(on.bot)) >= count:
            return
    raise TimeoutError("the request did not end")


async def training_s(on: Stage) -> float:
    """What the trainings of the newest request took themselves."""
    async with on.bot.services.database.read() as tx:
        newest = (await tx.scalars(select(Request.id).order_by(Request.created_at.desc()).limit(1))).one()
        mine = (await tx.scalars(select(Run).join(Lease).where(Lease.request_id == newest))).all()
    ended = [f"{run.side} {run.state} {run.reason}".rstrip() for run in mine if run.state != "done"]
    if ended:
        raise RuntimeError(f"there is nothing to measure: {'; '.join(ended)}")
    return sum(run.seconds or 0.0 for run in mine)
