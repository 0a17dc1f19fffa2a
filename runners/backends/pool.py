"""Hosts of the operator's own, which have enrolled once and ask the bot what to do: `runners.agent.hosting`.

A machine is an order that one host holds. The bot cannot call a host: giving and taking back are wishes that the host
fulfils when it asks next, and a machine is absent only when its host has said so, or has been silent until long after
the order's deadline, by which the agent ends itself.

Options of `[hardware.NAME]`: `labels` (what a host must have), `device` (cuda, rocm, xpu, tpu or none: what frameworks
must see; without it what the host has, if that is of one kind) with `count` (all), `base_environment` (a virtual
environment on the hosts below every side's own), `env.NAME` (a variable for the code). Each may stand in
`[backends.pool]` for all.
"""

from collections.abc import Mapping
from dataclasses import replace

from runners.backends.base import Backend, BackendError
from runners.spec import HostPool, MachineOrder, Offer, PoolHost, Sighting

# a host asks every few seconds; one that has not asked for so long is not there
_SILENT_S = 60.0
# how long a host may take to begin an order
_PATIENCE_S = 60.0
_DEADLINE_GRACE_S = 900.0
_DEVICES = ("cuda", "rocm", "xpu", "tpu", "none")


class HostSilentError(OSError):
    """A host that shall end an order does not ask what it is to do; the bot comes again."""


class PoolBackend(Backend):
    """The hosts of one bot's pool."""

    name = "pool"
    billed = False

    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        """Every host with the labels: those that could begin now first, of these the one that has rested longest."""
        merged = {**self.settings.options, **options}
        wanted = _words(merged.get("labels", ""))
        if not wanted:
            raise BackendError("config", "Set `labels` for this hardware: a host must have all of them.")
        found = [host for host in await self._pool().hosts() if wanted <= host.labels]
        words = ", ".join(sorted(wanted))
        if not found:
            raise BackendError("config", f"No host of the pool has the labels {words}; `benchbot pool list` shows all.")
        usable = [host for host in found if not host.quarantined]
        if not usable:
            raise BackendError("config", f"All hosts with the labels {words} are quarantined: {found[0].quarantined}")
        now = self.settings.clock()
        usable.sort(key=lambda host: (bool(_unfit(host, now)), host.used_at, host.name))
        return tuple(self._offer(host, merged) for host in usable)

    def _offer(self, host: PoolHost, options: Mapping[str, str]) -> Offer:
        kinds = tuple(host.kinds)
        device = options.get("device", kinds[0] if len(kinds) == 1 else "none")
        count = options.get("count", str(host.kinds.get(device, 0)))
        if device not in _DEVICES or not count.isdigit():
            raise BackendError("config", f"`device` is one of {', '.join(_DEVICES)}, and `count` a whole number.")
        looks = device != "none"
        return Offer(
            backend=self.name,
            zone=host.name,
            machine_type=host.devices,
            scopes=(host.name,),
            device=device if looks else "",
            devices=int(count) if looks else 0,
        )

    async def create(self, order: MachineOrder) -> None:
        """Hand the order to the host of the offer, which fetches it when it asks next."""
        host = await self._host(order.offer.zone)
        if host is None:
            raise BackendError("no_capacity", f"The host {order.offer.zone} is not in the pool any more.")
        if not _holds(host, order.name):
            unfit = f"The host {host.name} is quarantined." if host.quarantined else _unfit(host, self.settings.clock())
            if unfit:
                raise BackendError("no_capacity", unfit, host.name)
        if not order.trusted and not host.isolates:
            sentence = (
                f"The host {host.name} can keep a stranger's code from its own files only when its loop runs as root."
            )
            raise BackendError("config", f"{sentence} Start it as root, or use hardware with other labels.")
        complete = replace(order, options={**self.settings.options, **order.options})
        if not await self._pool().give(host.name, complete):
            raise BackendError("no_capacity", f"The host {host.name} has got another order meanwhile.", host.name)

    async def observe(self, name: str, zone: str) -> Sighting:
        """What the host has said of it."""
        host = await self._host(zone)
        if host is None or not _holds(host, name):
            return Sighting(name=name, state="absent", zone=zone)
        seen = self._sighting(host)
        if host.state == "leaving" and seen.state != "absent" and _silent(host, self.settings.clock()):
            raise HostSilentError(_silence(host, self.settings.clock()))
        return seen

    async def delete(self, name: str, zone: str) -> None:
        """Wish it gone; the host does it when it asks next."""
        await self._pool().take_back(zone, name)

    async def list_owned(self) -> tuple[Sighting, ...]:
        """What the hosts hold."""
        hosts = await self._pool().hosts()
        sightings = (self._sighting(host) for host in hosts if host.order is not None)
        return tuple(sighting for sighting in sightings if sighting.state != "absent")

    async def diagnose(self, name: str, zone: str) -> str:
        """The end of the agent's log, as the host has sent it."""
        host = await self._host(zone)
        return host.said if host and _holds(host, name) else ""

    def _sighting(self, host: PoolHost) -> Sighting:
        assert host.order is not None
        now, order = self.settings.clock(), host.order
        known = Sighting(
            name=order.name, state="running", zone=host.name, lease_id=order.lease_id, deadline_at=order.deadline_at
        )
        if now > order.deadline_at + _DEADLINE_GRACE_S and _silent(host, now):
            return replace(known, state="absent", code="agent_lost", evidence=_silence(host, now))
        if host.state in ("given", "sent"):
            if now <= host.used_at + _PATIENCE_S:
                return replace(known, state="starting")
            late = f"The host {host.name} has not begun the order within {_PATIENCE_S:g} s."
            return replace(known, state="stopped", code="no_capacity", evidence=late, scope=host.name)
        if host.state == "running" or (host.state == "leaving" and not host.code):
            return known
        return replace(known, state="stopped", code=host.code, evidence=host.said, scope=host.name)

    async def _host(self, name: str) -> PoolHost | None:
        return next((host for host in await self._pool().hosts() if host.name == name), None)

    def _pool(self) -> HostPool:
        if self.settings.pool is None:
            raise BackendError("config", "This command keeps no pool of hosts; the server does.")
        return self.settings.pool


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def _holds(host: PoolHost, name: str) -> bool:
    return host.order is not None and host.order.name == name


def _silent(host: PoolHost, now: float) -> bool:
    return now - host.seen_at > _SILENT_S


def _unfit(host: PoolHost, now: float) -> str:
    """Why a host could not begin an order now; empty when it could."""
    if _silent(host, now):
        return _silence(host, now)
    if host.order is not None:
        return f"The host {host.name} works for another lease."
    return f"The devices of the host {host.name} are not well: {host.trouble}." if host.trouble else ""


def _silence(host: PoolHost, now: float) -> str:
    minutes = (now - host.seen_at) / 60
    since = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours"
    return f"The host {host.name} has not been heard of for {since}."
