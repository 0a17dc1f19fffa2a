"""Hosts of the operator's own: scripted ones that speak the real protocol, with what may become of a computer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.core.nouns import Hardware
from bot.store.hosts import all_hosts
from tests.harness.agent import ScriptedAgent
from tests.harness.clouds import cloud_with
from tests.harness.pool import FakeHost, Hosts, max1100
from tests.harness.story import told
from tests.harness.world import World

XPU = Hardware(name="xpu", backend="pool", options={"labels": "xpu"})
COMMAND = "/benchmark resnet50 pairs=1 on=xpu"


@asynccontextmanager
async def pool(world: World, *hosts: FakeHost) -> AsyncIterator[Hosts]:
    """The world with the hardware xpu; at its end no host holds anything, unless it is silent."""
    settings = world.services.settings
    made = Hosts(world.clock, settings.database_url, settings.agent_url)
    # the backend is asked once more when the story is checked at its end
    world.closing.append(made.close)
    async with cloud_with(world, XPU, made):
        for host in hosts:
            await made.enrol(world.session, host)
        world.beside.append(lambda: made.act(world.session))
        await world.work()
        yield made
        async with made.database.read() as tx:
            left = {row.name: row.state for row in await all_hosts(tx) if row.state != "free"}
    assert {name for name in left if not made.known[name].silent} == set()
    assert not any(host.held for host in made.known.values() if not host.silent)


def decided(words: str) -> bool:
    """Whether a comment tells a result."""
    return "no change" in words or "inconclusive" in words


async def later(world: World) -> None:
    """Every host asks once more."""
    world.clock.now += 1
    await world.work()


async def states(hosts: Hosts) -> dict[str, tuple[int, str]]:
    """Faults and quarantine of each host."""
    async with hosts.database.read() as tx:
        return {row.name: (row.faults, row.quarantined) for row in await all_hosts(tx)}


@told
async def test_a_host_from_order_to_results(world: World) -> None:
    """`on=xpu`: one host fetches the order, both sides run on it, it is empty afterwards."""
    async with pool(world, FakeHost("max-1"), FakeHost("cpu-1", labels=["cpu"], devices=[])) as hosts:
        await world.says("maya", COMMAND)
        assert len(hosts.known["max-1"].begun) == 1
        assert hosts.known["cpu-1"].begun == []
    (results,) = world.read()
    assert "xpu" in results
    assert decided(results)


@told
async def test_a_host_falls_silent(world: World) -> None:
    """What it was given cannot be known to have ended before its deadline; then another host gets it."""
    async with pool(world, FakeHost("max-1"), FakeHost("max-2")) as hosts:
        world.hold_agents = True
        await world.says("maya", COMMAND)
        assert len(hosts.known["max-1"].held) == 1
        hosts.known["max-1"].silent = True
        await world.settle(until=900.0)
        assert hosts.known["max-2"].begun == []
        world.clock.now += 4 * 3600.0
        world.hold_agents = False
        await world.settle()
        assert len(hosts.known["max-2"].begun) == 1
        # it comes back, and removes what it still has
        hosts.known["max-1"].silent = False
        await later(world)
        await later(world)
    assert decided(world.read()[-1])


@told
async def test_a_host_is_restarted_in_the_middle(world: World) -> None:
    """It says so, has cleaned up, and the lease is made again from its start."""
    async with pool(world, FakeHost("max-1"), FakeHost("max-2")) as hosts:
        world.hold_agents = True
        await world.says("maya", COMMAND)
        hosts.known["max-1"].restart()
        world.hold_agents = False
        began = world.clock.now
        await world.settle()
        assert len(hosts.known["max-2"].begun) == 1
        assert world.clock.now - began < 600.0
    assert decided(world.read()[-1])


@told
async def test_two_device_faults(world: World) -> None:
    """A host that loses devices is left alone until somebody has looked at it; the other one gets the work."""
    async with pool(world, FakeHost("max-1"), FakeHost("max-2")) as hosts:
        flaky, good = hosts.known["max-1"], hosts.known["max-2"]
        flaky.then = max1100(3)
        await world.says("maya", COMMAND)
        assert await states(hosts) == {"max-1": (1, ""), "max-2": (0, "")}
        flaky.devices, flaky.then = max1100(4), max1100(4, "Unknown Error")
        await later(world)
        for _ in range(2):
            await world.says("maya", COMMAND)
        assert (len(flaky.begun), len(good.begun)) == (2, 1)
        faults, why = (await states(hosts))["max-1"]
        assert faults == 2
        assert "Unknown Error" in why
        flaky.devices = max1100(4)
        await later(world)
        for _ in range(2):
            await world.says("maya", COMMAND)
        assert (len(flaky.begun), len(good.begun)) == (2, 3)
    assert all(decided(results) for results in world.read())


@told
async def test_a_device_fails_before_the_lease(world: World) -> None:
    """The host looks before it begins: the same request gets another host, within moments."""
    async with pool(world, FakeHost("max-1"), FakeHost("max-2")) as hosts:
        world.beside.clear()
        await world.comment("maya", COMMAND)
        await world.settle(until=1.0)
        hosts.known["max-1"].devices = max1100(4, "GPU is lost")
        world.beside.append(lambda: hosts.act(world.session))
        await world.settle()
        assert [len(host.begun) for host in hosts.known.values()] == [1, 1]
        assert (await states(hosts))["max-1"][0] == 1
    assert decided(world.read()[-1])


@told
async def test_a_framework_does_not_see_the_devices(world: World) -> None:
    """The agent says so before it measures anything: a device fault, and another host gets the lease."""
    async with pool(world, FakeHost("max-1"), FakeHost("max-2")) as hosts:
        world.hold_agents = True
        await world.says("maya", COMMAND)
        ((name, order),) = hosts.orders(hosts.url).items()
        world.cloud.driven.add(name)
        agent = ScriptedAgent(world.session, order, world.script)
        await agent.claim()
        await agent.post("finish", {"outcome": "device_unhealthy", "sentence": "torch sees 0 of 4 xpu devices"})
        world.hold_agents = False
        await world.settle()
        assert len(hosts.known["max-2"].begun) == 1
        assert (await states(hosts))["max-1"][0] == 1
    assert decided(world.read()[-1])


@told
async def test_the_bot_is_dead_for_a_day(world: World) -> None:
    """Nobody took the results in time: told as that, the host is empty again, and the next request runs on it."""
    async with pool(world, FakeHost("max-1")) as hosts:
        world.hold_agents = True
        await world.says("maya", COMMAND)
        await world.close_bot()
        world.clock.now += 86_400
        for order in hosts.known["max-1"].held.values():
            order.update(state="stopped")
        await world.open_bot()
        await world.settle()
        assert "has not been heard of for 24 hours" in world.read()[-1]
        world.hold_agents = False
        # whether the lost lease was tried once more depends on who woke first: the lease or the look at its machine
        begun = len(hosts.known["max-1"].begun)
        await world.says("maya", COMMAND)
        assert len(hosts.known["max-1"].begun) == begun + 1
    assert decided(world.read()[-1])


@told
async def test_a_host_that_is_off_is_waited_for(world: World) -> None:
    """It is off; the comment says so, and it runs when it is back."""
    async with pool(world, FakeHost("max-1")) as hosts:
        hosts.known["max-1"].silent = True
        world.clock.now += 300
        world.hold_agents = True
        await world.says("maya", COMMAND)
        assert "has not been heard of" in world.read()[0]
        hosts.known["max-1"].silent = False
        world.hold_agents = False
        await world.settle()
    world.read()


@told
async def test_cancelled_before_the_host_has_asked(world: World) -> None:
    """Nothing begins."""
    async with pool(world, FakeHost("max-1")) as hosts:
        world.beside.clear()
        await world.comment("maya", COMMAND)
        await world.settle(until=1.0)
        await world.comment("maya", "/benchmark cancel")
        await world.settle(until=1.0)
        world.beside.append(lambda: hosts.act(world.session))
        await world.settle()
        assert hosts.known["max-1"].begun == []
        assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_no_host_has_the_labels(world: World) -> None:
    """The reader is told whose it is to mend."""
    async with pool(world, FakeHost("cpu-1", labels=["cpu"])):
        await world.says("maya", COMMAND)
    assert "has the labels xpu" in world.read()[0]
    assert world.checks()["benchbot / resnet50"][1] not in (None, "success")
