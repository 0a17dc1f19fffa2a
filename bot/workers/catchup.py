"""After downtime: asks GitHub which webhook deliveries failed, and has them sent again."""

from contextlib import suppress
from datetime import datetime

from sqlalchemy import select

from bot.github.client import Denied, Gone
from bot.services import Services
from bot.store.tables import Delivery

WINDOW_S = 3 * 24 * 3600.0
MOST = 500


async def redeliver_missed(services: Services) -> int:
    """Have deliveries of the last three days redelivered that we never stored; returns how many were asked for."""
    oldest = services.clock() - WINDOW_S
    asked = seen = 0
    guids: set[str] = set()
    async for delivery in services.api.deliveries():
        seen += 1
        delivered_at = datetime.fromisoformat(delivery["delivered_at"]).timestamp()
        if delivered_at < oldest or seen > MOST:
            break
        guid = str(delivery["guid"])
        if guid in guids:
            continue
        guids.add(guid)
        async with services.database.read() as tx:
            known = await tx.scalar(select(Delivery.id).where(Delivery.id == guid))
        if known is None:
            # one that is too old to be sent again does not keep the others away
            with suppress(Gone, Denied):
                await services.api.redeliver(int(delivery["id"]))
                asked += 1
    return asked
