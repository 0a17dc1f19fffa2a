"""What a maintainer learns from `/benchmark`: caught, caught, and proven harmless."""

from tests.harness.agent import Training
from tests.harness.story import story
from tests.harness.world import World


def _trainings(world: World, *, accuracy: float = 90.0, step_s: float = 0.1) -> None:
    """Head and base train alike but for what the head changes; seeds differ a little."""

    def script(commit: str, seed: int) -> Training:
        head = commit == world.pull.head_sha
        return Training(
            values={
                "validation/accuracy": (accuracy if head else 90.0) + seed / 100,
                "train/seconds_per_step": (step_s if head else 0.1) * (1 + seed / 1000),
            }
        )

    world.script = script


@story
async def test_regression_caught(world: World) -> None:
    """A pull request that loses accuracy: said so, with numbers, and the check fails."""
    _trainings(world, accuracy=80.0)
    said = await world.says("maya", "/benchmark resnet50")
    assert world.signs(said) == {"eyes", "rocket"}
    results, *_ = world.read()
    assert "1 regression" in results
    assert "80.0 %" in results
    assert world.pull.head_sha[:7] in results
    assert world.checks()["benchbot / resnet50"] == ("completed", "failure")


@story
async def test_slower_step_caught(world: World) -> None:
    """A pull request that takes twice as long for a step, and is as accurate."""
    _trainings(world, step_s=0.2)
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "1 regression" in results
    assert "+100" in results
    assert world.checks()["benchbot / resnet50"] == ("completed", "failure")


@story
async def test_nothing_changed_proven(world: World) -> None:
    """A pull request that changes nothing that matters: proven, not merely not found."""
    _trainings(world)
    await world.says("tom", "/benchmark resnet50")
    (results,) = world.read()
    assert "2 no change" in results
    assert world.checks()["benchbot / resnet50"] == ("completed", "success")
