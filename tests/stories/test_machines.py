"""Machines: never more at once than allowed, never one that nobody wants, gone in every state."""

from dataclasses import replace
from itertools import pairwise

from bot.workers import reaper
from runners.backends.base import BackendError
from runners.spec import MachineOrder, Offer
from tests.harness.agent import Training
from tests.harness.story import story, told
from tests.harness.world import World


@told
async def test_the_same_again_waits_for_its_place(world: World) -> None:
    """One machine at once: the second request waits, and runs when the first has ended."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    await world.says("tom", "/benchmark resnet50 pairs=1")
    assert len(world.cloud.machines) == 1
    waiting, *_ = [body for body in world.read() if "Asked for by tom" in body]
    assert "waiting" in waiting.lower() or "queued" in waiting.lower()
    world.hold_agents = False
    await world.settle()
    assert len(world.cloud.created) == 2
    assert [request.state for request in await world.requests()] == ["done", "done"]
    world.read()


@told
async def test_cancelled_while_it_waits_and_while_it_boots(world: World) -> None:
    """Cancel is heard in every state, and what was never started is not started."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    await world.says("maya", "/benchmark bert")
    assert len(world.cloud.created) == 1
    await world.says("maya", "/benchmark cancel")
    assert world.cloud.machines == {}
    assert len(world.cloud.created) == 1
    assert {name: state for name, (_, state) in world.checks().items()} == {
        "benchbot / resnet50": "cancelled",
        "benchbot / bert": "cancelled",
    }
    world.read()


@told
async def test_only_who_asked_or_may_write_cancels(world: World) -> None:
    """tom may stop his own, not maya's; maya may stop everybody's."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    await world.says("tom", "/benchmark cancel")
    assert len(world.cloud.machines) == 1
    await world.says("sam", "/benchmark cancel")
    assert len(world.cloud.machines) == 1
    await world.says("maya", "/benchmark cancel")
    assert world.cloud.machines == {}
    await world.says("tom", "/benchmark bert")
    await world.says("tom", "/benchmark cancel bert")
    assert world.cloud.machines == {}
    world.read()


@told
async def test_a_push_cancels_an_approval_run_that_only_waits(world: World) -> None:
    """A person's request goes on; the approval run that had not begun is void with its commit."""
    world.hold_agents = True
    await world.says("tom", "/benchmark bert")
    await world.reviews("maya", "APPROVE")
    await world.pushes("ada")
    await world.settle()
    by_kind = {request.kind: request for request in await world.requests()}
    assert by_kind["approval"].state == "done"
    assert "cancel" in by_kind["approval"].want
    assert by_kind["command"].state == "running"
    world.hold_agents = False
    await world.settle()
    world.read()


@told
async def test_a_button_of_the_check_run_cancels(world: World) -> None:
    """The same as the command, with the same rights."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    (check,) = world.repository.checks
    world.sandbox.acts.press(world.repository, check, world.sandbox.add_account("ada"), "cancel")
    await world.settle()
    assert world.cloud.machines == {}
    assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.sandbox.acts.rerequest(world.repository, check, world.sandbox.add_account("maya"))
    world.hold_agents = False
    await world.settle()
    assert len(await world.requests()) == 2
    assert world.checks()["benchbot / resnet50"][0] == "completed"
    world.read()


@told
async def test_what_no_row_wants_is_deleted(world: World) -> None:
    """With an empty database too: an unknown machine after a grace period, one past its deadline at once."""

    def order(name: str, deadline_at: float) -> MachineOrder:
        return MachineOrder(
            name=name,
            deployment="main",
            lease_id="lost",
            server_url="",
            token="",
            deadline_at=deadline_at,
            offer=Offer(backend="local"),
            options={},
            trusted=True,
        )

    now = world.clock.now
    world.cloud.machines["bb-main-unknown-0"] = order("bb-main-unknown-0", now + 10_000)
    world.cloud.machines["bb-main-late-0"] = order("bb-main-late-0", now - 1)
    world.cloud.driven |= set(world.cloud.machines)
    seen: dict[str, float] = {}
    assert await reaper.reap(world.services, seen) == ("bb-main-late-0",)
    world.clock.now += reaper.GRACE_S - 1
    assert await reaper.reap(world.services, seen) == ()
    world.clock.now += 2
    assert await reaper.reap(world.services, seen) == ("bb-main-unknown-0",)


@told
async def test_a_machine_that_never_reports_is_given_up(world: World) -> None:
    """No agent claims: another machine once, then the end, in plain words and never green."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    await world.settle(until=2 * 3600.0)
    assert len(world.cloud.created) == 2
    assert world.cloud.machines == {}
    assert world.checks()["benchbot / resnet50"][1] not in (None, "success")
    assert "did not report" in world.read()[0]


@told
async def test_silence_in_the_middle_is_a_lost_machine(world: World) -> None:
    """The agent stops talking: looked for, given up, and done again elsewhere."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    agent = await world.agent()
    await agent.claim()
    await world.settle(until=400.0)
    world.hold_agents = False
    await world.settle()
    assert len(world.cloud.created) == 2
    results = world.read()[0]
    assert "no change" in results or "inconclusive" in results


@told
async def test_a_benchmark_that_takes_too_long_ends_with_its_lease(world: World) -> None:
    """Heartbeats alone do not keep a machine: its deadline ends it."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1 timeout=10m")
    agent = await world.agent()
    await agent.claim()
    for _ in range(200):
        await world.settle(until=59.0)
        world.clock.now += 60
        if not world.cloud.machines:
            break
        await agent.post("heartbeat", {})
    await world.settle()
    assert world.cloud.machines == {}
    assert world.checks()["benchbot / resnet50"][1] not in (None, "success")
    world.read()


@story
async def test_zones_that_are_out_of_stock(world: World) -> None:
    """One refuses at once, one only after it had accepted, the third one gives; the next order follows at once."""
    world.cloud.zones = ("east", "west", "north")
    world.cloud.refuses["east"] = BackendError("no_capacity", "east has no such GPU now.")
    world.cloud.refuses_late["west"] = BackendError("no_capacity", "west has no such GPU now.", scope="west")
    await world.says("maya", "/benchmark resnet50 pairs=1")
    assert list(dict.fromkeys(world.cloud.ordered)) == ["east", "west", "north"]
    assert len(world.cloud.created) == 1
    assert "no change" in (said := world.read()[0]) or "inconclusive" in said
    if not world.restarts:
        assert world.cloud.ordered_at[-1] - world.cloud.ordered_at[0] < 1, (
            "a stock-out is answered by the next order at once"
        )


@told
async def test_a_stock_out_is_remembered(world: World) -> None:
    """A zone that refuses is left alone for longer each time, and counts from the start again once it has given."""
    world.cloud.zones = ("east", "north")
    world.cloud.refuses["east"] = BackendError("no_capacity", "east has no such GPU now.", scope="east")
    for _ in range(4):
        await world.says("maya", "/benchmark resnet50 pairs=1")
    asked = [at for at, zone in zip(world.cloud.ordered_at, world.cloud.ordered, strict=True) if zone == "east"]
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert all(pause >= 30 * 2**count for count, pause in enumerate(pauses))
    assert world.cloud.ordered.count("north") == 4
    del world.cloud.refuses["east"]
    world.clock.now += 1000
    await world.says("maya", "/benchmark resnet50 pairs=1")
    assert world.cloud.ordered[-1] == "east"
    world.read()


@told
async def test_everything_is_out_of_stock(world: World) -> None:
    """The progress comment says what is waited for; after the operator's patience the request ends in plain words."""
    world.cloud.refuses["here"] = BackendError("quota", "The project has no quota for this GPU.", scope="here")
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    assert "no quota for this GPU" in world.read()[0]
    asked = len(world.cloud.ordered)
    await world.settle(until=3600.0)
    assert asked < len(world.cloud.ordered) <= 8, "each refusal is answered by a longer pause"
    assert world.checks()["benchbot / resnet50"][1] not in (None, "success")
    assert "no quota for this GPU" in world.read()[0]


@told
async def test_cancelled_while_the_cloud_has_none(world: World) -> None:
    """What only waits ends at once, and nothing is ordered any more."""
    world.cloud.refuses["here"] = BackendError("no_capacity", "There is none.")
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    await world.says("maya", "/benchmark cancel")
    asked = len(world.cloud.ordered)
    await world.settle(until=3600.0)
    assert len(world.cloud.ordered) == asked
    assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_hardware_is_the_operators(world: World) -> None:
    """A name that the operator has not defined is refused with those that exist."""
    await world.says("maya", "/benchmark resnet50 on=h100x8")
    (reply,) = world.read()
    assert "h100x8" in reply
    assert "local" in reply
    world.script = lambda commit, seed: replace(Training(), values={"validation/accuracy": 1.0})
    assert world.cloud.created == []


@told
async def test_a_machine_whose_devices_do_not_work(world: World) -> None:
    """Nothing is measured on it; another one is tried; when that one is ill as well, the comment says what was seen."""
    world.hold_agents = True
    ill = {"outcome": "device_unhealthy", "sentence": "torch sees 0 of 1 cuda devices"}
    await world.says("maya", "/benchmark resnet50 pairs=1")
    first = await world.agent()
    await first.claim()
    await first.post("finish", ill)
    await world.settle()
    second = await world.agent()
    await second.claim()
    await second.post("finish", ill)
    await world.settle()
    assert len(world.cloud.created) == 2
    assert "torch sees 0 of 1 cuda devices" in world.read()[0]
