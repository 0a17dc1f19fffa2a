"""Leases of several hosts: each claims as a member of its own, all begin a run together, and one that fails ends it."""

from typing import Any

from aiohttp import web
from sqlalchemy import update

from bot.store.leases import members_of
from bot.store.tables import Lease, Member
from bot.web.agent_api import body_of, member_of, with_lease
from bot.web.keys import SERVICES
from runners.protocol import PREFIX


def add_routes(app: web.Application) -> None:
    """What only members ask."""
    app.router.add_post(f"{PREFIX}/ready", with_lease(ready))


async def ready(request: web.Request, lease: Lease) -> web.Response:
    """A member is ready to begin a run. It may when all are; asked again and again until then."""
    services, body, mine = request.app[SERVICES], await body_of(request), member_of(request)
    values: dict[str, Any] = {"ready": str(body.get("run") or ""), "beat_at": services.clock()}
    async with services.database.write() as tx:
        if mine == 0 and isinstance(body.get("port"), int):
            known = await tx.get_one(Member, (lease.id, 0))
            values["address"] = f"{known.address.rpartition(':')[0] or known.address}:{body['port']}"
        await tx.execute(update(Member).where(Member.lease_id == lease.id, Member.member == mine).values(**values))
        members = await members_of(tx, lease.id)
        if members and all(member.ready == values["ready"] for member in members):
            # who asks last may find that the first host is done with the run already
            met = f"{values['ready']} {members[0].address}"
            await tx.execute(update(Member).where(Member.lease_id == lease.id).values(met=met))
        else:
            met = members[mine].met if mine < len(members) else ""
    run, _, leader = met.partition(" ")
    return web.json_response({"go": run == values["ready"] != "", "leader": leader})
