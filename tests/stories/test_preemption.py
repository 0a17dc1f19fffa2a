"""Machines that a cloud takes back in the middle of a training: the next one goes on from the last checkpoint."""

from tests.harness.agent import ScriptedAgent
from tests.harness.story import story, told
from tests.harness.world import World


async def _begin(world: World) -> ScriptedAgent:
    agent = await world.agent()
    await agent.claim()
    return agent


async def _taken_back(world: World) -> None:
    """The machine goes, and the next one comes or the lease ends."""
    made = len(world.cloud.created)
    world.cloud.preempt()
    for _ in range(10):
        if len(world.cloud.created) == made:
            await world.settle(until=60.0)


@story
async def test_another_machine_goes_on_from_the_checkpoint(world: World) -> None:
    """What was done is not done again; accuracy is compared, step time is not, and the comment says why."""
    world.hold_agents, world.cloud.spot = True, True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    first = await _begin(world)
    head, base = first.work["runs"]
    assert first.work["interruptible"]
    await first.train(head)
    await first.save(base, "checkpoints/step-100.pt", b"weights after 100 steps")
    await first.save(base, "checkpoints/step-200.pt", b"weights after 200 steps")
    await first.put(f"runs/{base['id']}/files/checkpoints/step-300.pt.part?offset=0", b"half of the wei")
    await _taken_back(world)

    second = await _begin(world)
    (left,) = second.work["runs"]
    assert left["id"] == base["id"]
    assert await second.kept(left) == {
        "checkpoints/step-100.pt": b"weights after 100 steps",
        "checkpoints/step-200.pt": b"weights after 200 steps",
    }
    await second.train(left)
    await second.post("finish", {"outcome": "done", "sentence": ""})
    world.hold_agents = False
    await world.settle()
    (results,) = world.read()
    assert "accuracy" in results
    assert "another one went on from the last checkpoint" in results
    assert "not compared for that reason: step_time" in results


@told
async def test_a_machine_that_says_that_it_goes(world: World) -> None:
    """With half a minute's notice the agent ships what there is and says so; nobody waits for it to fall silent."""
    world.hold_agents, world.cloud.spot = True, True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    first = await _begin(world)
    await first.save(first.work["runs"][0], "checkpoints/last.pt", b"weights")
    await first.post("finish", {"outcome": "interrupted", "sentence": "the machine is being taken away"})
    world.hold_agents = False
    await world.settle()
    assert len(world.cloud.created) == 2
    (results,) = world.read()
    assert "another one went on" in results


@told
async def test_no_progress_twice_ends_it(world: World) -> None:
    """Machines that live too short to add anything would cost money for ever."""
    world.hold_agents, world.cloud.spot = True, True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    for _ in range(3):
        agent = await _begin(world)
        await agent.save(agent.work["runs"][0], "checkpoints/last.pt", b"the same weights")
        await _taken_back(world)
    await world.settle()
    assert len(world.cloud.created) == 3
    assert "Twice in a row nothing had been done" in world.read()[0]


@told
async def test_every_machine_brings_it_forward(world: World) -> None:
    """As long as each one adds a checkpoint, it goes on for as many as it takes."""
    world.hold_agents, world.cloud.spot = True, True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    for step in range(4):
        agent = await _begin(world)
        await agent.save(agent.work["runs"][0], "checkpoints/last.pt", f"weights {step}".encode())
        await _taken_back(world)
    world.hold_agents = False
    await world.settle()
    assert len(world.cloud.created) == 5
    assert "another one went on" in world.read()[0]
