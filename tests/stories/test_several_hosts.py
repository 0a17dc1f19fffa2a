"""Leases of several hosts: all of them or none, one run at a time, and a failure on one is a failure of all."""

from dataclasses import replace

from bot.core.nouns import Hardware
from tests.harness.agent import ScriptedAgent
from tests.harness.cloud import FakeBackend
from tests.harness.clouds import cloud_with
from tests.harness.story import told
from tests.harness.world import World

PAIR = Hardware(name="pair", backend="pairs", price_usd_per_hour=4.0, hosts=2)


class Pairs:
    """The fake cloud under another name."""

    def __init__(self, world: World) -> None:
        self.world = world

    def backend(self, folder: object) -> FakeBackend:
        settings = replace(self.world.services.backends["local"].settings, deployment="main")
        return FakeBackend(settings)

    def orders(self, server_url: str) -> dict[str, object]:
        return {}


async def _begin(world: World) -> list[ScriptedAgent]:
    """Two machines, two agents that have claimed."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1 on=pair")
    agents = []
    for name, order in sorted(world.cloud.machines.items()):
        world.cloud.driven.add(name)
        agents.append(ScriptedAgent(world.session, order, world.script, world.by_run))
    assert [agent.order.member for agent in agents] == [0, 1]
    for agent in agents:
        await agent.claim()
    return agents


@told
async def test_both_begin_together(world: World) -> None:
    """No run begins before the second host is ready; then both know where the first one is; one comment, both paid."""
    async with cloud_with(world, PAIR, Pairs(world)):
        first, second = await _begin(world)
        assert first.work["hosts"] == 2
        for run in first.work["runs"]:
            assert not (await first.post("ready", {"run": run["id"], "port": 29500}))["go"]
            assert await second.post("ready", {"run": run["id"]}) == {"go": True, "leader": "10.0.0.1:29500"}
            assert (await first.post("ready", {"run": run["id"], "port": 29500}))["go"]
            await second.put(f"runs/{run['id']}/files/log.txt?offset=0", b"what the second host printed")
            await first.train(run)
        await second.post("finish", {"outcome": "done", "sentence": ""})
        await world.settle()
        assert len(world.cloud.machines) == 2, "the first host ends the lease, not the second"
        await first.post("finish", {"outcome": "done", "sentence": ""})
        world.hold_agents = False
        await world.settle()
        assert world.cloud.machines == {}
    assert "no change" in world.read()[0]


@told
async def test_a_failure_on_the_second_host(world: World) -> None:
    """The first host hears with its next heartbeat that the run is to end, and why."""
    async with cloud_with(world, PAIR, Pairs(world)):
        first, second = await _begin(world)
        head, _ = first.work["runs"]
        for agent in (first, second):
            await agent.post("ready", {"run": head["id"], "port": 29500})
        failed = {"kind": "run_ended", "run": head["id"], "reason": "oom", "sentence": "the command ran out of memory"}
        await second.post("event", failed)
        told = await first.post("heartbeat", {"phase": "run", "run": head["id"]})
        assert (told["abort"], told["why"]) == (head["id"], "host 1: the command ran out of memory")
        ended = {"kind": "run_ended", "run": head["id"], "exit": 137, "reason": "user_error", "sentence": told["why"]}
        await first.post("event", ended)
        await first.train(first.work["runs"][1])
        await first.post("finish", {"outcome": "done", "sentence": ""})
        world.hold_agents = False
        await world.settle()
    assert "host 1: the command ran out of memory" in world.read()[0]


@told
async def test_the_second_host_falls_silent(world: World) -> None:
    """However lively the first one is: both machines go, and two others do the work."""
    async with cloud_with(world, PAIR, Pairs(world)):
        first, _ = await _begin(world)
        for _ in range(12):
            world.clock.now += 40
            if first.order.name not in world.cloud.machines:
                break
            await first.post("heartbeat", {"phase": "run", "run": ""})
            await world.work()
        assert first.order.name not in world.cloud.machines
        world.hold_agents = False
        await world.settle()
        assert len(world.cloud.created) == 4
    assert "no change" in world.read()[0]


@told
async def test_only_one_of_two_machines_is_to_be_had(world: World) -> None:
    """Half a lease is none: what there is goes again, and nothing is left."""
    world.cloud.at_most = 1
    world.hold_agents = True
    async with cloud_with(world, PAIR, Pairs(world)):
        await world.says("maya", "/benchmark resnet50 pairs=1 on=pair")
        await world.settle(until=7200.0)
    assert world.cloud.machines == {}
    assert "The zone is sold out" in world.read()[0]
