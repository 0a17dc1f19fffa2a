"""The engine: claim a due row, load what its step needs, decide, do, save. Every worker is one subclass.

A step may be repeated after a crash at any line, so whatever it does outside must be safe to do twice. What it
decides is written in one transaction, and only while the claim is still its own.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import ClassVar, Generic

import aiohttp
import gidgethub

from bot.core.lifecycle import legal, living
from bot.services import Services
from bot.store.rows import CLAIM_S, Change, Row, claim, release, save

log = logging.getLogger("benchbot.workers")

# what the world may answer on a bad day; everything else is a bug and kept as an incident
PASSING = (aiohttp.ClientError, gidgethub.GitHubException, TimeoutError, OSError)


class Worker(ABC, Generic[Row]):
    """Drives the rows of one table. `noun` is the name of its lifecycle."""

    noun: ClassVar[str]
    table: type[Row]

    def __init__(self, services: Services) -> None:
        self.services = services

    @abstractmethod
    async def step(self, row: Row) -> Change:
        """What the row needs now. Called again with the same row if this process dies before the change is saved."""

    def pause(self, row: Row) -> float:
        """Seconds until a failed step is tried again."""
        return min(60.0, 2.0 ** min(row.attempts - 1, 6))

    async def tick(self) -> bool:
        """Drive one row that is due. False when none was."""
        row = await self.claim()
        if row is not None:
            await self.drive(row)
        return row is not None

    async def claim(self) -> Row | None:
        """Take the row that has waited longest, if one is due."""
        services = self.services
        return await claim(services.database, self.table, living(self.noun), services.new_id(), services.clock())

    async def drive(self, row: Row) -> None:
        """One step of a claimed row, written down. Raises only when the database is away."""
        services = self.services
        try:
            async with asyncio.timeout(0.8 * CLAIM_S):
                change = await self.step(row)
        except Exception as error:
            await self._failed(row, error)
            return
        if not legal(self.noun, row.state, change.state):
            raise AssertionError(f"{self.noun} {row.id} may not go from {row.state} to {change.state}")
        if not await save(services.database, row, change):
            log.warning("%s %s was claimed by somebody else meanwhile", self.noun, row.id)
        if change.writes:
            # a step that has changed nothing but its own row concerns nobody else
            services.wake()

    async def _failed(self, row: Row, error: Exception) -> None:
        where = f"{self.noun} {row.id} in {row.state}"
        if isinstance(error, PASSING):
            log.warning("%s: %s, trying again", where, type(error).__name__)
            reference = ""
        else:
            reference = await self.services.incident(where, error)
            log.error("%s failed, reference %s", where, reference, exc_info=error)
        await release(self.services.database, row, self.services.clock() + self.pause(row), reference)
