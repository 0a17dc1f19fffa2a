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
        self._bells: list[asyncio.Event] = []

    def wake(self) -> None:
        """Something was written that may be due now."""
        for bell in self._bells:
            bell.set()

    async def run(self, workers: Sequence[Worker[Any]]) -> None:
        """Drive the workers until cancelled. A step that is under way when that happens is taken over by its claim."""
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                bell = asyncio.Event()
                self._bells.append(bell)
                group.create_task(self._drive(worker, group, bell))

    async def _drive(self, worker: Worker[Any], group: asyncio.TaskGroup, bell: asyncio.Event) -> None:
        """One looks for rows that are due; several steps may be under way at once."""
        places = asyncio.Semaphore(AT_ONCE)

        def ended(_: asyncio.Task[None]) -> None:
            places.release()
            # its row may have been poked meanwhile
            bell.set()

        pause_s = 1.0
        while True:
            await places.acquire()
            # what happens while this worker looks rings again
            bell.clear()
            try:
                row = await worker.claim()
                pause_s = 1.0
            except Exception:
                places.release()
                await self._away(worker, pause_s)
                pause_s = min(30.0, 2 * pause_s)
                continue
            if row is not None:
                group.create_task(self._step(worker, row)).add_done_callback(ended)
                continue
            places.release()
            # `wait_for` would lose a cancellation that comes together with the bell
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await bell.wait()

    async def _step(self, worker: Worker[Any], row: Any) -> None:
        try:
            await worker.drive(row)
        except Exception:
            await self._away(worker, 1.0)

    async def _away(self, worker: Worker[Any], pause_s: float) -> None:
        # the database itself is away: nothing can be written down, so wait and say so
        log.exception("%s worker cannot work, trying again in %.0f s", worker.noun, pause_s)
        await asyncio.sleep(pause_s)
