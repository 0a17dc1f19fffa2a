"""Scripted hosts of a pool: they ask the bot over HTTP as the real loop does, and have the faults of a story."""

import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web

from bot.artifacts.local import LocalStore
from bot.cli.local import free_port
from bot.services import Services
from bot.settings import Settings
from bot.store.database import Database
from bot.store.hosts import StoredPool, all_hosts, invite
from bot.web import application
from runners.backends.base import BackendSettings
from runners.backends.pool import PoolBackend
from runners.protocol import PREFIX
from runners.spec import MachineOrder, Offer
from tests.harness.land import Land
from tests.harness.world import Clock

Json = dict[str, Any]
CODE_S = 3600.0
NAME = "bb-main-kfzrtnnpvreex5dktrwozzl6qv-0"
XPU = {"labels": "xpu", "env.ZE_AFFINITY_MASK": "0"}


def max1100(count: int, trouble: str = "") -> list[Json]:
    """So many Intel GPUs; the first one may not be well."""
    good = {"vendor": "intel", "name": "Max 1100", "memory_mb": 49152, "driver": "1.6.33578", "trouble": ""}
    return [{**good, "trouble": trouble if at == 0 else ""} for at in range(count)]


@dataclass
class FakeHost:
    """One host. `silent`: it is switched off, or cannot reach the bot."""

    name: str
    labels: list[str] = field(default_factory=lambda: ["xpu"])
    devices: list[Json] = field(default_factory=lambda: max1100(4))
    isolates: bool = True
    silent: bool = False
    never_begins: bool = False
    fails_to_remove: int = 0
    # devices that it shows after its next lease
    then: list[Json] | None = None
    held: dict[str, Json] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    asked_at: float = -1.0
    statuses: list[int] = field(default_factory=list)

    @property
    def credential(self) -> str:
        """What it has made for itself."""
        return f"credential-of-{self.name}"

    def restart(self) -> None:
        """Switched off and on in the middle of whatever it did."""
        for order in self.held.values():
            order.update(state="stopped", code="agent_lost", said="The host was restarted, or the agent was killed.")

    async def call(self, session: ClientSession, url: str, what: str, body: Json) -> Json:
        """One call; its status is kept."""
        headers = {"Authorization": f"Bearer {self.credential}"}
        async with session.post(f"{url}{PREFIX}/hosts/{what}", json=body, headers=headers) as answer:
            self.statuses.append(answer.status)
            said: Json = await answer.json()
            return said

    async def ask(self, session: ClientSession, url: str) -> bool:
        """One round of its loop; whether something changed."""
        holds = [
            {"order": name, **{key: order[key] for key in ("state", "code", "said")}}
            for name, order in self.held.items()
        ]
        report = {"labels": self.labels, "devices": self.devices, "isolates": self.isolates, "holds": holds}
        answer = await self.call(session, url, "poll", report)
        before = dict(self.held)
        for name in [name for name in self.held if name != answer["order"]]:
            if self.fails_to_remove:
                self.fails_to_remove -= 1
                continue
            del self.held[name]
            if self.then is not None:
                self.devices, self.then = self.then, None
        start = answer["start"]
        if start and not self.held and not self.never_begins:
            ill = any(device["trouble"] for device in self.devices) or len(self.devices) < start["devices"]
            refused = {"state": "stopped", "code": "device_unhealthy", "said": "A device is not well."}
            running = {"state": "running", "code": "", "said": "the agent's log"}
            self.held[answer["order"]] = {"start": start, **(refused if ill else running)}
            self.begun.append(answer["order"])
        return before.keys() != self.held.keys()


class Hosts:
    """The hosts of one bot, as the stand-in of a cloud."""

    def __init__(self, clock: Callable[[], float], database_url: str, url: str) -> None:
        self.clock, self.url = clock, url
        self.database = Database(database_url)
        self.known: dict[str, FakeHost] = {}

    async def enrol(self, session: ClientSession, host: FakeHost) -> FakeHost:
        """Invited by the operator, and enrolled with the code."""
        code = f"code-of-{host.name}"
        await invite(self.database, f"id-{host.name}", host.name, code, self.clock() + CODE_S)
        assert await host.call(session, self.url, "enrol", {"code": code}) == {"name": host.name}
        self.known[host.name] = host
        return host

    def backend(self, folder: Path, **options: str) -> PoolBackend:
        """A backend as a new process would build it."""
        pool = StoredPool(self.database, self.clock)
        return PoolBackend(
            BackendSettings(deployment="main", folder=folder, clock=self.clock, options=options, pool=pool)
        )

    def orders(self, server_url: str) -> Mapping[str, MachineOrder]:
        """What runs on hosts that are there."""
        return {
            name: MachineOrder(
                name=name,
                deployment="main",
                lease_id=order["start"]["lease"],
                server_url=server_url,
                token=order["start"]["token"],
                deadline_at=order["start"]["deadline_at"],
                offer=Offer(backend="pool", zone=host.name),
            )
            for host in self.known.values()
            for name, order in host.held.items()
            if order["state"] == "running" and not host.silent
        }

    async def act(self, session: ClientSession) -> bool:
        """Every host asks once for each moment of the clock."""
        due = [host for host in self.known.values() if not host.silent and host.asked_at != self.clock()]
        for host in due:
            host.asked_at = self.clock()
            await host.ask(session, self.url)
        return bool(due)

    async def close(self) -> None:
        """Nothing is asked any more."""
        await self.database.close()


class Scene:
    """A bot's web and store, and its hosts."""

    def __init__(self, folder: Path, session: ClientSession) -> None:
        self.clock, self.session = Clock(), session
        self.port = free_port()
        url = f"http://127.0.0.1:{self.port}"
        self.settings = Settings(
            data_folder=folder,
            database_url=f"sqlite+aiosqlite:///{folder}/rows.sqlite",
            base_url=url,
            agent_url=url,
            port=self.port,
        )
        self.hosts = Hosts(self.clock, self.settings.database_url, url)
        self.backend = self.hosts.backend(folder)

    async def host(self, name: str = "max-1", **more: Any) -> FakeHost:
        """One that has enrolled, and has asked once."""
        made = await self.hosts.enrol(self.session, FakeHost(name, **more))
        await self.asks()
        return made

    async def asks(self, after_s: float = 5.0) -> None:
        """Every host asks."""
        self.clock.now += after_s
        await self.hosts.act(self.session)

    async def order(self, *, name: str = NAME, trusted: bool = True, at: int = 0) -> MachineOrder:
        """An order for one of the offers."""
        return MachineOrder(
            name=name,
            deployment="main",
            lease_id="kfzrtnnpvreex5dktrwozzl6qv",
            server_url=self.settings.agent_url,
            token="token-1",
            deadline_at=self.clock.now + 3600,
            offer=(await self.backend.offers(XPU))[at],
            options=XPU,
            trusted=trusted,
        )

    async def made(self) -> MachineOrder:
        """An order that runs."""
        ordered = await self.order()
        await self.backend.create(ordered)
        await self.asks()
        await self.asks()
        return ordered

    async def state(self, name: str = NAME, zone: str = "max-1") -> tuple[str, str]:
        """State and code of a machine."""
        seen = await self.backend.observe(name, zone)
        return seen.state, seen.code

    async def row(self, name: str = "max-1") -> Any:
        """A host's row."""
        async with self.hosts.database.read() as tx:
            return next(row for row in await all_hosts(tx) if row.name == name)


@asynccontextmanager
async def alone(folder: Path) -> AsyncIterator[Scene]:
    """A scene without a GitHub, at rest."""
    shutil.copyfile(Land.database(), folder / "rows.sqlite")
    async with ClientSession() as session:
        made = Scene(folder, session)
        services = Services(
            settings=made.settings,
            database=made.hosts.database,
            github=None,
            backends={},
            artifacts=LocalStore(folder / "artifacts"),
            clock=made.clock,
        )
        runner = web.AppRunner(application.build(services), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", made.port).start()
        try:
            yield made
        finally:
            await runner.cleanup()
            await made.hosts.close()
