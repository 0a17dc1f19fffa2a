"""Runs all workers in one process: each claims rows while there are due ones, then waits for a nudge or a tick."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from bot.workers.base import Worker

log = logging.getLogger("benchbot.workers")

TICK_S = 1.0
# steps of one kind of row under way at the same time
AT_ONCE = 4


class Loop:
    """`wake` may be called from anywhere in the process; the tick makes up for nudges from other processes."""

    def __init__(self) -> None:
        self._nudge = asyncio.Event()
        self._nudges = 0

    def wake(self) -> None:
        """Something was written that may be due now."""
        self._nudges += 1
        self._nudge.set()

    async def run(self, workers: Sequence[Worker[Any]]) -> None:
        """Drive the workers until cancelled. A step that is under way when that happens is taken over by its claim."""
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(self._drive(worker, group))

    async def _drive(self, worker: Worker[Any], group: asyncio.TaskGroup) -> None:
        """One looks for rows that are due; several steps may be under way at once."""
        places = asyncio.Semaphore(AT_ONCE)
        pause_s = 1.0
        while True:
            await places.acquire()
            seen = self._nudges
            try:
                row = await worker.claim()
                pause_s = 1.0
            except Exception:
                places.release()
                await self._away(worker, pause_s)
                pause_s = min(30.0, 2 * pause_s)
                continue
            if row is None:
                places.release()
                await self._idle(seen)
            else:
                group.create_task(self._step(worker, row, places))

    async def _step(self, worker: Worker[Any], row: Any, places: asyncio.Semaphore) -> None:
        try:
            await worker.drive(row)
        except Exception:
            await self._away(worker, 1.0)
        finally:
            places.release()

    async def _away(self, worker: Worker[Any], pause_s: float) -> None:
        # the database itself is away: nothing can be written down, so wait and say so
        log.exception("%s worker cannot work, trying again in %.0f s", worker.noun, pause_s)
        await asyncio.sleep(pause_s)

    async def _idle(self, seen: int) -> None:
        if self._nudges != seen:
            return  # something happened while this worker looked
        self._nudge.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._nudge.wait(), TICK_S)
