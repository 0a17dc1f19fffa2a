"""A world for stories: the local GitHub, the bot with its real web and workers, a cloud in memory, a clock of its own.

A story drives everything by hand. The same story is told again with the process killed after each outside call.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web
from sqlalchemy import select

from bot.app import workers
from bot.artifacts.local import LocalStore
from bot.github.auth import AppKey
from bot.github.client import GitHub
from bot.services import Services
from bot.settings import Settings
from bot.store.database import Database
from bot.store.migrate import migrate
from bot.store.rows import CLAIM_S
from bot.store.tables import Base, Controlled, Delivery, Lease, Machine, Message, Request
from bot.web import application
from bot.workers import reaper
from runners.backends.base import BackendSettings
from tests.harness.agent import Gone, Script, ScriptedAgent, Training
from tests.harness.cloud import Cloud, FakeBackend

START = 1_790_000_000.0
CONTROLLED: tuple[type[Controlled], ...] = (Delivery, Request, Lease, Machine, Message)


class Killed(BaseException):
    """The process ends here: nothing after the outside call happens."""


@dataclass(slots=True)
class Clock:
    """Seconds since the epoch, moved by hand."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Killer:
    """Counts outside calls; kills once, after the effect of call number `after` (from 1)."""

    after: int | None = None
    calls: list[str] = field(default_factory=list)

    def guard(self, edge: Any, name: str) -> Any:
        """The edge with every coroutine method counted."""
        return _Guarded(edge, name, self)

    def happened(self, call: str) -> None:
        self.calls.append(call)
        if self.after is not None and len(self.calls) == self.after:
            raise Killed(call)


class _Guarded:
    def __init__(self, edge: Any, name: str, killer: Killer) -> None:
        self._edge, self._name, self._killer = edge, name, killer

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._edge, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def counted(*args: Any, **kwargs: Any) -> Any:
            answer = await method(*args, **kwargs)
            self._killer.happened(f"{self._name}.{name}")
            return answer

        return counted


class World:
    """One repository with one open pull request, people with different rights, and the bot. See `open_world`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.clock = Clock()
        self.random = random.Random(seed)
        self.killer = Killer()
        self.cloud = Cloud(self.clock)
        self.script: Script = lambda commit, seed: Training()
        self.hold_agents = False
        self.restarts = 0
        self.told: list[str] = []

    # ---- driving ----------------------------------------------------------------------------------------------------

    async def settle(self, *, until: float = 4 * 3600.0) -> None:
        """Let everything happen that will happen by itself, at most `until` seconds from now."""
        end = self.clock.now + until
        for _ in range(5_000):
            if await self._progress():
                continue
            due = await self._next_due()
            if due is None or due > end:
                return
            self.clock.now = max(self.clock.now, due) + 0.001
        raise AssertionError("the world does not come to rest")

    async def _progress(self) -> bool:
        """One round: webhooks arrive, workers tick in any order, agents work. False when nothing happened."""
        moved = await self._deliver()
        crew = list(workers(self.services))
        self.random.shuffle(crew)
        try:
            for worker in crew:
                moved |= await worker.tick()
        except Killed:
            await self._restart()
            return True
        return moved or await self._agents()

    async def _restart(self) -> None:
        """A new process on the same rows; the claims of the dead one run out first."""
        self.killer.after = None
        self.restarts += 1
        self.clock.now += CLAIM_S + 1
        await self.close_bot()
        await self.open_bot()

    async def _agents(self) -> bool:
        moved = False
        for name, order in list(self.cloud.machines.items()):
            if self.hold_agents or name in self.cloud.driven:
                continue
            self.cloud.driven.add(name)
            moved = True
            try:
                await ScriptedAgent(self.session, order, self.script).run()
            except Gone:
                pass  # the lease ended under the agent
        return moved

    async def _next_due(self) -> float | None:
        async with self.services.database.read() as tx:
            dues = []
            for table in CONTROLLED:
                found = await tx.scalars(select(table.due_at).where(table.due_at.is_not(None)))
                dues += [due for due in found if due is not None]
        return min(dues, default=None)
