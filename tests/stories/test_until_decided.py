"""`seeds=auto`: as many seeds as it takes to be sure, and not one more."""

import re

from tests.harness.agent import Training
from tests.harness.story import story, told
from tests.harness.world import World


def _accuracies(world: World, *, lost: float, spread: float) -> None:
    """The head loses so many points; seeds differ by as much as `spread`, the same on both sides."""

    def script(commit: str, seed: int) -> Training:
        noise = spread * ((seed * 7) % 5 - 2) / 2
        accuracy = 90.0 + noise - (lost if commit == world.pull.head_sha else 0.0)
        return Training(values={"validation/accuracy": accuracy, "train/seconds_per_step": 0.1})

    world.script = script


def _runs(comment: str) -> int:
    found = re.search(r"Runs \((\d+)\)", comment)
    return int(found[1]) if found else 0


@story
async def test_what_is_plain_takes_two_seeds(world: World) -> None:
    """Five a side were allowed; the machine is given back after two."""
    _accuracies(world, lost=-10.0, spread=0.02)
    await world.says("maya", "/benchmark resnet50 seeds=auto")
    results, *_ = world.read()
    assert "1 improvement" in results
    assert _runs(results) == 4


@told
async def test_what_is_not_takes_more(world: World) -> None:
    """Two seeds cannot tell whether it lost as much as it may; with more they can, or all five have been tried."""
    _accuracies(world, lost=1.6, spread=2.0)
    await world.says("maya", "/benchmark resnet50 seeds=auto")
    results, *_ = world.read()
    assert _runs(results) in (6, 8, 10)


@told
async def test_the_plan_says_what_may_happen(world: World) -> None:
    await world.says("tom", "/benchmark plan resnet50 seeds=auto")
    reply, *_ = world.read()
    assert "2 to 5 seeds, until decided" in reply


@told
async def test_a_regression_is_decided_on_one_machine_and_repeated_on_another(world: World) -> None:
    _accuracies(world, lost=10.0, spread=0.02)
    await world.says("maya", "/benchmark resnet50 seeds=auto")
    results, *_ = world.read()
    assert "1 regression" in results
    assert len(world.cloud.created) == 2
    assert _runs(results) == 8


@told
async def test_people_see_how_many_it_may_be(world: World) -> None:
    _accuracies(world, lost=0.0, spread=0.02)
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 seeds=auto")
    agent = await world.agent()
    await agent.claim()
    await agent.train(agent.work["runs"][0])
    await world.settle(until=20)
    results, *_ = world.read()
    assert "run 1 of at most 10" in results
    world.hold_agents = False
    await agent.run()
