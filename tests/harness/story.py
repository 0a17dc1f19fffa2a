"""Stories: told once as it is, and again with the bot killed after each of its calls to the outside."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.world import World, open_world

Tell = Callable[[World], Awaitable[None]]
MOST_CALLS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A story that has ended: its world, its calls to the outside, and what GitHub shows."""

    world: World
    calls: tuple[str, ...]
    words: list[str]


def story(tell: Tell) -> Callable[..., Awaitable[None]]:
    """A coroutine of one `World` becomes a test of two parts, `told` and `killed`."""

    @pytest.mark.parametrize("part", ["told", "killed"])
    async def test(part: str, tmp_path: Path, story_out: Callable[[World], None]) -> None:
        if part == "told":
            story_out((await _told(tell, tmp_path)).world)
        else:
            await _killed_everywhere(tell, tmp_path)

    test.__name__ = test.__qualname__ = tell.__name__
    test.__doc__, test.__module__ = tell.__doc__, tell.__module__
    return test


def told(tell: Tell) -> Callable[..., Awaitable[None]]:
    """A coroutine of one `World` becomes a test that tells it once: for faults whose calls other stories make too."""

    async def test(tmp_path: Path, story_out: Callable[[World], None]) -> None:
        story_out((await _told(tell, tmp_path)).world)

    test.__name__ = test.__qualname__ = tell.__name__
    test.__doc__, test.__module__ = tell.__doc__, tell.__module__
    return test


async def _told(tell: Tell, folder: Path, kill_after: int | None = None) -> Told:
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    async with open_world(folder, seed=kill_after or 0, kill_after=kill_after) as world:
        await tell(world)
        world.hold_agents = False
        await world.settle()
        calls = tuple(world.killer.calls)
        await world.check_the_end()
        return Told(world=world, calls=calls, words=await world.final_words())


async def _killed_everywhere(tell: Tell, folder: Path) -> None:
    """The same story, killed after call 1, 2, ...: the same last words, and nothing left behind."""
    whole = await _told(tell, folder / "whole")
    calls, words = whole.calls, whole.words
    assert len(calls) <= MOST_CALLS, f"a story of {len(calls)} calls is too long to be told that often"
    for after, call in enumerate(calls, 1):
        survived = await _told(tell, folder / f"killed-{after}", kill_after=after)
        # another order of webhooks may leave out a call; what was reached must have been survived
        assert survived.world.restarts == 1 or len(survived.calls) < after
        told = f"killed after {call} ({after} of {len(calls)}), the bot said something else:\n"
        assert survived.words == words, told + "\n".join(
            difflib.unified_diff(*(_lines(each) for each in (words, survived.words)))
        )


def _lines(words: list[str]) -> list[str]:
    return "\n".join(words).splitlines()
