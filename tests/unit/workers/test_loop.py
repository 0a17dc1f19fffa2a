"""The loop: nothing that is due waits for a tick, whenever it became due."""

import asyncio
from collections.abc import Callable
from typing import ClassVar

import pytest

from bot.workers import loop
from bot.workers.loop import Loop


class Rows:
    """A worker of rows that are names in a list; `during` happens in the middle of a look or of a step."""

    noun = "row"
    news: ClassVar[asyncio.Queue[str]]

    def __init__(self, *due: str) -> None:
        self.due = list(due)
        self.driven: list[str] = []
        self.during: dict[str, Callable[[], None]] = {}

    async def claim(self) -> str | None:
        found = self.due.pop(0) if self.due else None
        await self._happens("look" if found is None else "")
        return found

    async def drive(self, row: str) -> None:
        await self._happens(row)
        self.driven.append(row)
        self.news.put_nowait(row)

    async def _happens(self, when: str) -> None:
        await asyncio.sleep(0)
        self.during.pop(when, lambda: None)()


@pytest.fixture(autouse=True)
def no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    Rows.news = asyncio.Queue()
    monkeypatch.setattr(loop, "TICK_S", 3600.0)


async def _drive(running: Loop, workers: list[Rows], rows: int) -> None:
    """Until so many rows have been driven; then the loop ends when it is told to."""
    task = asyncio.create_task(running.run(workers))  # type: ignore[arg-type] # all that the loop needs of them
    async with asyncio.timeout(10):
        for _ in range(rows):
            await Rows.news.get()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(10):
            await task


async def test_a_row_that_is_poked_during_its_own_step() -> None:
    """Nobody else wakes the worker: the step itself does when it has ended."""
    worker = Rows("a")
    worker.during["a"] = lambda: worker.due.append("again")
    await _drive(Loop(), [worker], 2)
    assert worker.driven == ["a", "again"]


async def test_a_nudge_that_comes_during_a_look() -> None:
    """The look has found nothing, but was too early."""
    worker, running = Rows(), Loop()

    def nudge() -> None:
        worker.due.append("late")
        running.wake()

    worker.during["look"] = nudge
    await _drive(running, [worker], 1)
    assert worker.driven == ["late"]


async def test_a_nudge_reaches_every_worker() -> None:
    """One that looks meanwhile does not take it from the others."""
    running, workers = Loop(), [Rows(), Rows(), Rows()]

    def nudge() -> None:
        for worker in workers:
            worker.due.append("now")
        running.wake()

    workers[-1].during["look"] = nudge
    await _drive(running, workers, 3)
    assert [worker.driven for worker in workers] == [["now"]] * 3
