"""Machines: made when wanted, and deleted until the cloud says they are gone. A resource of their own, so that no
ending of a lease can forget one. An offer is written down before it is ordered; one that fails is cleared away before
the next is tried."""

import time

from sqlalchemy import Executable, select, update

from bot.core.nouns import Hardware
from bot.core.placement import choose, scope_of
from bot.store.codec import dump, load
from bot.store.cooldowns import cool, cooling, warmed
from bot.store.database import Transaction
from bot.store.leases import free_slot
from bot.store.rows import Change, poke
from bot.store.tables import Lease, Machine, Request
from bot.workers.base import Worker
from runners.backends.base import Backend, BackendError
from runners.spec import MachineOrder, Offer, Sighting

LOOK_S = 60.0
CLOSING_S = 2.0
# a young machine is looked at more often: most refusals come within half a minute of the order
YOUNG_S, YOUNG_LOOK_S, OLDER_LOOK_S = 60.0, 2.0, 10.0
# refusals after which another offer is worth a try
_ELSEWHERE = ("no_capacity", "quota", "preempted", "boot_timeout", "device_unhealthy")


class Machines(Worker[Machine]):
    """Brings each machine to what its row wants."""

    noun = "machine"
    table = Machine

    async def step(self, row: Machine) -> Change:
        """One look at the cloud, at most one call that changes it."""
        backend = self.services.backends.get(row.backend)
        if backend is None:
            raise LookupError(f"machine {row.id} is of backend {row.backend}, which is not configured any more")
        if row.state == "closing" or row.want == "gone":
            return await self._close(row, backend)
        steps = {
            "wanted": self._choose,
            "creating": self._create,
            "starting": self._await,
            "clearing": self._clear,
            "up": self._watch,
        }
        return await steps[row.state](row, backend)

    async def _choose(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        hardware = self.services.settings.hardware.get(row.hardware)
        if hardware is None:
            return self._refused(row, "config", f"The operator has no hardware named {row.hardware} any more.")
        try:
            offers = await backend.offers(hardware.options)
        except BackendError as error:
            return self._refused(row, error.code, error.sentence)
        if not offers:
            return self._refused(row, "config", f"The hardware {row.hardware} names no zone that has such a machine.")
        async with self.services.database.read() as tx:
            leader = await self._leader(tx, row)
            cooled = await cooling(tx)
        if leader is not None:
            # all hosts of a lease stand in one place; where one order brings them all it is waited for
            whole = bool(leader.offer) and load(Offer, leader.offer).one_order
            if leader.state in ("wanted", "creating", "clearing", *(("starting",) if whole else ())):
                return Change(state="wanted", due_at=now + YOUNG_LOOK_S)
            offers = tuple(offer for offer in offers if scope_of(offer, "") == scope_of(load(Offer, leader.offer), ""))
        chosen = choose(offers, cooled, now) if offers else now
        if leader is not None and not isinstance(chosen, Offer):
            return self._refused(row, "no_capacity", f"{leader.zone} has no second machine of this kind.")
        if isinstance(chosen, Offer):
            # what stands in a queue meanwhile is not taken from the time of the runs
            deadline_at = now + row.limit_s + (hardware.wait_s if chosen.queued else 0.0)
            values = {
                "offer": dump(chosen),
                "zone": chosen.zone,
                "attempt": row.attempt + 1,
                "price_usd_per_hour": _price(chosen, hardware),
                "ordered_at": leader.ordered_at if leader is not None and chosen.one_order else now,
                "deadline_at": deadline_at,
            }
            lease = update(Lease).where(Lease.id == row.lease_id).values(deadline_at=deadline_at)
            return Change(state="creating", due_at=now, values=values, writes=(lease,))
        phase = f"waiting for {row.hardware}: {row.sentence or 'it is out of stock'}"
        again = time.strftime("%H:%M", time.gmtime(chosen))
        told = f"{phase.rstrip('.')} ({row.attempt} offers tried, next at {again} UTC)"
        lease = update(Lease).where(Lease.id == row.lease_id).values(phase=told, poked=True)
        return Change(state="wanted", due_at=chosen, writes=(lease,))

    async def _leader(self, tx: Transaction, row: Machine) -> Machine | None:
        """The machine of the first host, for those of the others."""
        return await tx.get(Machine, row.id.rpartition("-")[0] + "-0") if row.member else None

    async def _create(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        hardware, offer = self.services.settings.hardware.get(row.hardware), load(Offer, row.offer)
        order = MachineOrder(
            name=row.id,
            deployment=self.services.settings.deployment,
            lease_id=row.lease_id,
            server_url=self.services.settings.agent_url,
            token=row.token,
            deadline_at=row.deadline_at,
            offer=offer,
            attempt=row.attempt,
            member=row.member,
            options=hardware.options if hardware else {},
            trusted=row.trusted,
        )
        try:
            await backend.create(order)
        except BackendError as error:
            return await self._elsewhere(row, error.code, error.sentence, error.scope)
        return Change(state="starting", due_at=now)

    async def _await(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        seen = await backend.observe(row.id, row.zone)
        began = {"up_at": row.up_at or now}
        if seen.state == "running":
            # from here on the token is in the machine alone
            offer = load(Offer, row.offer)
            scopes = tuple(scope_of(offer, name) for name in ("", *offer.scopes))
            writes = (warmed(scopes), poke(Lease, Lease.id == row.lease_id))
            return Change(state="up", due_at=now + LOOK_S, values={"token": "", **began}, writes=writes)
        if seen.state == "waiting":
            # what it waits for is what people are told when it waits too long
            return Change(
                state="starting", due_at=now + OLDER_LOOK_S, values={"sentence": seen.evidence, "ordered_at": now}
            )
        if seen.state == "starting":
            young = now - began["up_at"] < YOUNG_S
            wake = () if row.up_at else (poke(Lease, Lease.id == row.lease_id),)
            due_at = now + (YOUNG_LOOK_S if young else OLDER_LOOK_S)
            return Change(state="starting", due_at=due_at, values=began, writes=wake)
        async with self.services.database.read() as tx:
            claimed = (await tx.get_one(Lease, row.lease_id)).nonce_hash
        if claimed:
            # its agent has begun already: this lease ends with its machine
            return await self._lost(row, backend, seen)
        # what was accepted and then vanished without a word was not to be had either
        return await self._elsewhere(row, seen.code or "no_capacity", seen.evidence, seen.scope)

    async def _watch(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        seen = await backend.observe(row.id, row.zone)
        if seen.state in ("absent", "stopped") or now > row.deadline_at:
            return await self._lost(row, backend, seen)
        return Change(state="up", due_at=now + LOOK_S)

    async def _lost(self, row: Machine, backend: Backend, seen: Sighting) -> Change:
        late = self.services.clock() > row.deadline_at
        words = seen.evidence or await backend.diagnose(row.id, row.zone)
        code = "lease_timeout" if late else seen.code or "agent_lost"
        # where a machine has just been taken back, the next one is not looked for first
        cooled = (await self._cool(row, seen.scope, words),) if code == "preempted" else ()
        return self._refused(row, code, words, cooled)

    async def _elsewhere(self, row: Machine, code: str, sentence: str, named: str) -> Change:
        """This offer is not to be had. What was begun is cleared away, then the next one is tried."""
        if code not in _ELSEWHERE or row.member:
            return self._refused(row, code, sentence)
        said, cooled = {"code": code, "sentence": sentence}, await self._cool(row, named, sentence)
        return Change(state="clearing", due_at=self.services.clock(), values=said, writes=(cooled,))

    async def _cool(self, row: Machine, named: str, sentence: str) -> Executable:
        """Leave what the offer is about alone for a while."""
        now, scope = self.services.clock(), scope_of(load(Offer, row.offer), named)
        async with self.services.database.read() as tx:
            return await cool(self.services.database, tx, scope, now, sentence)

    def _refused(self, row: Machine, code: str, sentence: str, more: tuple[Executable, ...] = ()) -> Change:
        """It is given up. It may be half made: what was begun is deleted like everything else."""
        said = {"code": code, "sentence": sentence, "want": "gone"}
        writes = (poke(Lease, Lease.id == row.lease_id), *more)
        return Change(state="closing", due_at=self.services.clock(), values=said, writes=writes)

    async def _clear(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        if not await self._deleted(row, backend):
            return Change(state="clearing", due_at=now + CLOSING_S)
        # what never came costs nothing; what was there and was taken away does
        cost = self._cost(row) if row.code in ("preempted", "boot_timeout") else 0.0
        values = {"up_at": None, "cost_usd": row.cost_usd + cost}
        return Change(state="wanted", due_at=now, values=values, writes=(_billed(row, cost),))

    async def _close(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        if not await self._deleted(row, backend):
            return Change(state="closing", due_at=now + CLOSING_S)
        cost = self._cost(row)
        # results do not wait for the machine to go; what it cost is told when it has gone
        request = select(Lease.request_id).where(Lease.id == row.lease_id).scalar_subquery()
        told = (poke(Request, Request.id == request),) if cost else ()
        return Change(
            state="gone",
            values={"gone_at": now, "cost_usd": row.cost_usd + cost},
            writes=(_billed(row, cost), *told, *free_slot(row.lease_id, row.hardware, row.id)),
        )

    def _cost(self, row: Machine) -> float:
        """From its order, which we may have looked at late, until now, when the cloud says that it is gone."""
        begun = row.up_at and (row.ordered_at or row.up_at)
        return (self.services.clock() - begun) / 3600 * row.price_usd_per_hour if begun else 0.0

    async def _deleted(self, row: Machine, backend: Backend) -> bool:
        if not row.offer and row.up_at is None:
            return True  # nothing was ever ordered
        await backend.delete(row.id, row.zone)
        return (await backend.observe(row.id, row.zone)).state == "absent"


def _billed(row: Machine, cost_usd: float) -> Executable:
    return update(Lease).where(Lease.id == row.lease_id).values(cost_usd=Lease.cost_usd + cost_usd, poked=True)


def _price(offer: Offer, hardware: Hardware) -> float:
    """What the machine costs an hour: the operator's word, else the offer's; what nobody knows cannot be settled."""
    return (offer.price_usd_per_hour if hardware.price_usd_per_hour is None else hardware.price_usd_per_hour) or 0.0
