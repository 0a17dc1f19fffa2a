"""Machines: made when wanted, and deleted until the cloud says they are gone. A resource of their own, so that no
ending of a lease can forget one."""

from sqlalchemy import update

from bot.store.leases import free_slot
from bot.store.rows import Change, poke
from bot.store.tables import Lease, Machine
from bot.workers.base import Worker
from runners.backends.base import Backend, BackendError
from runners.spec import MachineOrder

LOOK_S = 60.0
STOCK_OUT_S = 30.0
CLOSING_S = 2.0


class Machines(Worker[Machine]):
    """Brings each machine to what its row wants."""

    noun = "machine"
    table = Machine

    async def step(self, row: Machine) -> Change:
        """One look at the cloud, at most one call that changes it."""
        backend = self.services.backends[row.backend]
        if row.state == "closing" or row.want == "gone":
            return await self._close(row, backend)
        if row.state == "wanted":
            return await self._create(row, backend)
        return await self._watch(row, backend)

    async def _create(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        hardware = self.services.settings.hardware[row.hardware]
        failure = BackendError("no_capacity", "No zone has such a machine.")
        for offer in await backend.offers(hardware.options):
            order = MachineOrder(
                name=row.id,
                deployment=self.services.settings.deployment,
                lease_id=row.lease_id,
                server_url=self.services.settings.agent_url,
                token=row.token,
                deadline_at=row.deadline_at,
                offer=offer,
                options=hardware.options,
                trusted=row.trusted,
            )
            try:
                await backend.create(order)
            except BackendError as error:
                failure = error
                continue
            up = {"zone": offer.zone, "up_at": now, "token": "", "price_usd_per_hour": offer.price_usd_per_hour}
            return Change(state="up", due_at=now + LOOK_S, values=up, writes=(poke(Lease, Lease.id == row.lease_id),))
        if failure.code == "no_capacity":
            return Change(state="wanted", due_at=now + STOCK_OUT_S, values={"sentence": failure.sentence})
        # it may be half made: what was begun is deleted like everything else
        said = {"code": failure.code, "sentence": failure.sentence, "want": "gone"}
        return Change(state="closing", due_at=now, values=said, writes=(poke(Lease, Lease.id == row.lease_id),))

    async def _watch(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        seen = await backend.observe(row.id, row.zone)
        if seen.state in ("absent", "stopped") or now > row.deadline_at:
            code = "lease_timeout" if now > row.deadline_at else "agent_lost"
            said = {"code": code, "sentence": seen.evidence or await backend.diagnose(row.id, row.zone), "want": "gone"}
            return Change(state="closing", due_at=now, values=said, writes=(poke(Lease, Lease.id == row.lease_id),))
        return Change(state="up", due_at=now + LOOK_S)

    async def _close(self, row: Machine, backend: Backend) -> Change:
        now = self.services.clock()
        await backend.delete(row.id, row.zone)
        if (await backend.observe(row.id, row.zone)).state != "absent":
            return Change(state="closing", due_at=now + CLOSING_S)
        billed_s = now - row.up_at if row.up_at else 0.0
        cost = billed_s / 3600 * row.price_usd_per_hour
        return Change(
            state="gone",
            values={"gone_at": now},
            writes=(
                update(Lease).where(Lease.id == row.lease_id).values(cost_usd=Lease.cost_usd + cost, poked=True),
                *free_slot(row.lease_id, row.hardware),
            ),
        )
