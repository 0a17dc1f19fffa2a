"""Hosts of the operator's own: they hear of an order when they ask, and tell of it when they ask again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from runners.backends.pool import PoolBackend
from tests.contracts.clouds import Cloud, Refusal
from tests.harness.pool import XPU, FakeHost, Scene, alone

LATE = "has not begun the order"


class Pool(Cloud):
    """One host."""

    name = "pool"
    options: ClassVar = XPU
    zone = "max-1"
    more: ClassVar = {"trusted": True}
    late = (
        Refusal("silent", "no_capacity", zone, LATE),
        Refusal("never_begins", "no_capacity", zone, LATE),
    )
    late_s = 61.0
    last_words = "the agent's log"
    scene: Scene
    host: FakeHost

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with alone(self.folder) as self.scene:
            self.clock = self.scene.clock
            self.host = await self.scene.host()
            yield

    def backend(self) -> PoolBackend:
        return self.scene.hosts.backend(self.folder)

    def made(self) -> int:
        return len(self.host.begun)

    async def is_empty(self) -> bool:
        return not self.host.held and (await self.scene.row()).state == "free"

    async def settle(self) -> None:
        """The host asks twice."""
        for _ in range(2):
            await self.scene.asks()

    async def later(self, seconds: float) -> None:
        await self.scene.asks(seconds)

    def refuse_late(self, answer: Any) -> None:
        setattr(self.host, answer, True)

    def fail_deletes(self, times: int) -> None:
        self.host.fails_to_remove = times
