"""What looks worse on one machine is measured again on another one before anybody is accused.

That a bot which is killed meanwhile goes on is told by the stories of `test_verdicts`.
"""

import re
from dataclasses import replace

from bot.core.money import Limits
from runners.backends.base import BackendError
from tests.harness.agent import Training
from tests.harness.story import told
from tests.harness.world import World


def _head_loses(world: World, *, first: float, second: float | None = None) -> None:
    """The head is so many points worse on the first machine, and so many on the second, whose seeds come after."""

    def script(commit: str, seed: int) -> Training:
        lost = first if seed <= 2 or second is None else second
        accuracy = 90.0 - (lost if commit == world.pull.head_sha else 0.0) + seed / 100
        return Training(values={"validation/accuracy": accuracy, "train/seconds_per_step": 0.1 * (1 + seed / 1000)})

    world.script = script


@told
async def test_two_machines_show_the_same(world: World) -> None:
    """Both are told together: four pairs, four seeds, two machines, and the check fails."""
    _head_loses(world, first=10.0)
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "1 regression" in results
    assert "4 of 4 seeds worse" in results
    assert "Runs (8)" in results
    assert len(world.cloud.created) == 2
    assert world.checks()["benchbot / resnet50"] == ("completed", "failure")
    links = set(re.findall(r"https?://[^\s)\"<>#]+/(?:runs|requests)/[^\s)\"<>#]+", results))
    assert len([link for link in links if "/runs/" in link]) == 8
    for link in links:
        async with world.session.get(link) as answer:
            assert answer.status == 200, link


@told
async def test_the_second_machine_shows_nothing(world: World) -> None:
    """Not confirmed: the check is not red, and the numbers of both are told."""
    _head_loses(world, first=10.0, second=0.0)
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "regression:" not in results
    assert "1 inconclusive" in results
    assert world.checks()["benchbot / resnet50"] == ("completed", "neutral")


@told
async def test_while_it_is_repeated_people_see_it(world: World) -> None:
    _head_loses(world, first=10.0)
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    first = await world.agent()
    await first.run()
    await world.settle(until=20)
    results, *_ = world.read()
    assert "repeating a suspected regression" in results
    assert world.checks()["benchbot / resnet50"] == ("in_progress", None)
    second = await world.agent()
    await second.claim()
    seeds = [(run["side"], run["seed"]) for run in second.work["runs"]]
    assert seeds == [("head", 3), ("base", 3), ("base", 4), ("head", 4)]
    await world.says("maya", "/benchmark cancel")
    assert world.cloud.machines == {}
    assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_no_second_machine_is_to_be_had(world: World) -> None:
    """A suspicion stays one, and why is told."""
    _head_loses(world, first=10.0)
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    first = await world.agent()
    world.cloud.fail_create = [BackendError("config", "This project is closed.")] * 9
    await first.run()
    await world.settle()
    results, *_ = world.read()
    assert "1 suspected regression" in results
    assert "on one machine only" in results
    assert "could not be repeated on another machine" in results
    assert world.checks()["benchbot / resnet50"] == ("completed", "neutral")


@told
async def test_a_repetition_that_costs_more_than_the_request_may(world: World) -> None:
    """Limits hold for what the bot wants, too; what one machine shows is told as that."""
    _head_loses(world, first=10.0)
    settings = world.services.settings
    local = replace(settings.hardware["local"], price_usd_per_hour=4.0)
    world.settings = replace(settings, hardware={**settings.hardware, "local": local}, limits=Limits(budget_usd=12))
    await world.close_bot()
    await world.open_bot()
    await world.says("maya", "/benchmark resnet50 timeout=10m")
    results, *_ = world.read()
    assert "1 suspected regression" in results
    assert "It was not repeated on another machine." in results
    assert len(world.cloud.created) == 1


@told
async def test_what_is_not_worse_is_not_repeated(world: World) -> None:
    _head_loses(world, first=-10.0)
    await world.says("maya", "/benchmark resnet50")
    assert "1 improvement" in world.read()[0]
    assert len(world.cloud.created) == 1
