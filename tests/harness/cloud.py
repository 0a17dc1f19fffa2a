"""A cloud in memory: the outermost wall on the machines' side. Its agents are scripted, but speak the real protocol."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from runners.backends.base import Backend, BackendError
from runners.spec import MachineOrder, Offer, Sighting


@dataclass(slots=True)
class Cloud:
    """Machines by name. `fail_create` are errors that the next creates answer."""

    clock: Callable[[], float]
    machines: dict[str, MachineOrder] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    driven: set[str] = field(default_factory=set)
    fail_create: list[BackendError] = field(default_factory=list)
    # zones in the order of preference, and what they answer: at once, or only after the order was accepted
    zones: tuple[str, ...] = ("here",)
    refuses: dict[str, BackendError] = field(default_factory=dict)
    refuses_late: dict[str, BackendError] = field(default_factory=dict)
    ordered: list[str] = field(default_factory=list)
    ordered_at: list[float] = field(default_factory=list)
    not_isolated: str = ""
    at_most: int = 1_000
    # machines that were taken back, as a cloud does with spot machines; `spot` is what the offers say
    taken_back: set[str] = field(default_factory=set)
    spot: bool = False

    def preempt(self) -> None:
        """Take every machine away, as a cloud does with spot machines."""
        self.taken_back |= set(self.machines)
        self.machines.clear()

    def lose(self) -> None:
        """Every machine is gone, and the cloud does not know why."""
        self.machines.clear()


class FakeBackend(Backend):
    """The `local` hardware of stories."""

    name = "local"
    billed = False
    cloud: Cloud

    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        kind = "spot" if self.cloud.spot else "standard"
        return tuple(Offer(backend="local", zone=zone, scopes=(zone,), provisioning=kind) for zone in self.cloud.zones)

    async def create(self, order: MachineOrder) -> None:
        if self.cloud.fail_create:
            raise self.cloud.fail_create.pop(0)
        zone = order.offer.zone
        self.cloud.ordered.append(zone)
        self.cloud.ordered_at.append(self.cloud.clock())
        if len(self.cloud.machines) >= self.cloud.at_most and order.name not in self.cloud.machines:
            raise BackendError("no_capacity", "The zone is sold out.")
        if zone in self.cloud.refuses:
            raise self.cloud.refuses[zone]
        if zone not in self.cloud.refuses_late and order.name not in self.cloud.machines:
            self.cloud.created.append(order.name)
            self.cloud.machines[order.name] = order

    async def observe(self, name: str, zone: str) -> Sighting:
        if name in self.cloud.machines:
            return Sighting(name=name, state="running", zone=zone)
        why = self.cloud.refuses_late.get(zone)
        code, said = (why.code, why.sentence) if why else ("", "")
        if name in self.cloud.taken_back:
            code = "preempted"
        return Sighting(name=name, state="absent", zone=zone, code=code, evidence=said, scope=why.scope if why else "")

    async def delete(self, name: str, zone: str) -> None:
        self.cloud.machines.pop(name, None)

    async def list_owned(self) -> tuple[Sighting, ...]:
        return tuple(
            Sighting(name=order.name, state="running", lease_id=order.lease_id, deadline_at=order.deadline_at)
            for order in self.cloud.machines.values()
        )

    async def diagnose(self, name: str, zone: str) -> str:
        return ""

    def isolates(self) -> str:
        return self.cloud.not_isolated


Drive = Callable[[MachineOrder], Awaitable[None]]
