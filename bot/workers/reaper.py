"""The net under the net: asks every backend what machines it has of ours, and deletes what no row wants."""

import logging

from sqlalchemy import select

from bot.services import Services
from bot.store.tables import Machine

log = logging.getLogger("benchbot.reaper")

EVERY_S = 60.0
# a machine younger than this may belong to a row that is being written now
GRACE_S = 300.0


async def reap(services: Services, first_seen: dict[str, float]) -> tuple[str, ...]:
    """Delete machines of this deployment that are past their deadline or that no living row knows.

    `first_seen` is kept between calls, so that a machine without a row is deleted only after the grace period.
    Returns the names of what was deleted. Works with an empty database too.
    """
    now = services.clock()
    deleted = []
    async with services.database.read() as tx:
        living = set(await tx.scalars(select(Machine.id).where(Machine.state != "gone")))
    present = set()
    for name, backend in services.backends.items():
        try:
            owned = await backend.list_owned()
        except Exception:
            # one cloud that is away must not keep the others' machines alive; what was seen there stays remembered
            log.exception("the machines of %s cannot be listed now", name)
            present |= set(first_seen)
            continue
        for seen in owned:
            present.add(seen.name)
            since = first_seen.setdefault(seen.name, now)
            overdue = seen.deadline_at is not None and now > seen.deadline_at
            unwanted = seen.name not in living and now - since >= GRACE_S
            if overdue or unwanted:
                log.warning("deleting machine %s: %s", seen.name, "past its deadline" if overdue else "no row wants it")
                await backend.delete(seen.name, seen.zone)
                deleted.append(seen.name)
    for name in set(first_seen) - present:
        del first_seen[name]
    return tuple(deleted)
