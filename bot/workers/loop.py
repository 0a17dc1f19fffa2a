"""Runs all workers in one process: each drives its rows while there are due ones, then waits for a nudge or a tick."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from bot.workers.base import Worker

log = logging.getLogger("benchbot.workers")

TICK_S = 1.0


class Loop:
    """`wake` may be called from anywhere in the process; the tick makes up for nudges from other processes."""

    def __init__(self) -> None:
        self._nudge = asyncio.Event()
        self._nudges = 0

    def wake(self) -> None:
        """Something was written that may be due now."""
        self._nudges += 1
        self._nudge.set()

    async def run(self, workers: Sequence[Worker[Any]], at_once: int = 4) -> None:
        """Drive the workers until cancelled. A step that is under way when that happens is taken over by its claim."""
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                for place in range(at_once if worker.noun in ("message", "machine", "delivery") else 2):
                    # one of each looks at every tick; the others come when there is news, which work itself makes
                    group.create_task(self._drive(worker, TICK_S if place == 0 else None))

    async def _drive(self, worker: Worker[Any], tick_s: float | None) -> None:
        pause_s = 1.0
        while True:
            seen = self._nudges
            try:
                worked = await worker.tick()
                pause_s = 1.0
            except Exception:
                # the database itself is away: nothing can be written down, so wait and say so
                log.exception("%s worker cannot work, trying again in %.0f s", worker.noun, pause_s)
                await asyncio.sleep(pause_s)
                pause_s = min(30.0, 2 * pause_s)
                continue
            if not worked:
                await self._idle(seen, tick_s)

    async def _idle(self, seen: int, tick_s: float | None) -> None:
        if self._nudges != seen:
            return  # something happened while this worker looked
        self._nudge.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._nudge.wait(), tick_s)
