"""TPU machines: nodes and queued resources, from the order to the results comment."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from sqlalchemy import select

from bot.core.nouns import Hardware
from bot.store.tables import Machine
from tests.harness.agent import ScriptedAgent
from tests.harness.clouds import cloud_with
from tests.harness.story import told
from tests.harness.tpu import CloudTpu, Fault
from tests.harness.world import World

V5E = Hardware(
    name="v5e-8",
    backend="tpu",
    price_usd_per_hour=9.6,
    options={"tpu": "v5e", "count": "8", "zones": "us-central1-a, us-west4-b"},
)
SPOT = replace(V5E, options={**V5E.options, "provisioning": "spot"})
STOCK_OUT = Fault("RESOURCE_EXHAUSTED", "There is no more capacity in the zone us-central1-a.")


@asynccontextmanager
async def cloud_tpu(world: World, hardware: Hardware = V5E, queue_s: float = 0.0) -> AsyncIterator[CloudTpu]:
    """The world with v5e-8; at its end neither node nor queued resource may be left, and no call was wrong."""
    google = CloudTpu(world.clock, boot_s=20.0, queue_s=queue_s, delete_s=5.0)
    await google.start()
    try:
        async with cloud_with(world, hardware, google):
            yield google
    finally:
        await google.stop()
    assert (google.nodes, google.queued) == ({}, {}), "machines are left"
    assert google.violations == []


def read_results(world: World) -> str:
    results, *_ = world.read()
    assert "v5e-8" in results
    assert "no change" in results or "inconclusive" in results
    return results


@told
async def test_a_stock_out_of_tpus_that_is_told_late(world: World) -> None:
    """The first zone takes the order and refuses it seconds later; the second one has a TPU."""
    async with cloud_tpu(world) as google:
        google.faults.late["us-central1-a"] = STOCK_OUT
        await world.says("maya", "/benchmark resnet50 pairs=1 on=v5e-8")
        assert [zone for zone, _, _ in google.orders_taken] == ["us-central1-a", "us-west4-b"]
    assert "cost $" in read_results(world)


@told
async def test_an_order_waits_in_the_queue(world: World) -> None:
    """Minutes in the queue are neither billed nor taken from the runs; then it becomes active."""
    async with cloud_tpu(world, SPOT, queue_s=300.0) as google:
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=v5e-8")
        (queued,) = google.queued.values()
        assert (queued.state, google.nodes) == ("WAITING_FOR_RESOURCES", {})
        async with world.services.database.read() as tx:
            machine = (await tx.scalars(select(Machine))).one()
        assert machine.deadline_at >= machine.created_at + V5E.wait_s + machine.limit_s
        world.hold_agents = False
        await world.settle()
        assert len(google.orders_taken) == 1
    read_results(world)


@told
async def test_a_tpu_is_taken_back_in_the_middle(world: World) -> None:
    """The agent has begun when the node is preempted: its leftovers go, and another one does it all again."""
    async with cloud_tpu(world, SPOT) as google:
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=v5e-8")
        ((name, order),) = google.orders(world.services.settings.agent_url).items()
        await ScriptedAgent(world.session, order, world.script, world.by_run).claim()
        google.preempt(name)
        await world.settle(until=400.0)
        world.hold_agents = False
        await world.settle()
        first, second = google.orders_taken
        assert first[2] != second[2]
    read_results(world)


@told
async def test_cancelled_while_a_tpu_is_being_made(world: World) -> None:
    """Neither can be deleted before it is made, and both are gone in the end."""
    async with cloud_tpu(world) as google:
        google.boot_s = 40.0
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=v5e-8")
        assert [node.state for node in google.nodes.values()] == ["CREATING"]
        await world.says("maya", "/benchmark cancel")
        await world.settle(until=600.0)
        assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_no_tpu_at_all(world: World) -> None:
    """`tpu-sim` runs on the bot's own host, and nobody can take its numbers for those of a TPU."""
    pretender = Hardware(name="tpu-sim", options={"simulate": "tpu", "devices": "8"})
    async with cloud_with(world, pretender):
        await world.says("maya", "/benchmark resnet50 pairs=1 on=tpu-sim")
        await world.says("maya", "/benchmark list")
    results, listed = world.read()
    assert "On `tpu-sim` (simulated TPU: a CPU in its place, not comparable with a real one)" in results
    assert "`tpu-sim, simulated TPU" in results
    assert "simulated TPU" in listed
    (request,) = await world.requests()
    base = world.services.settings.base_url
    for path in (f"requests/{request.id}", re.findall(r"/(runs/[a-z2-7]{26})", results)[0]):
        async with world.session.get(f"{base}/{path}") as answer:
            assert "simulated TPU" in await answer.text()


@told
async def test_no_account_for_the_machines(world: World) -> None:
    """No machine with the project's default account, and the comment says how to make one without roles."""
    nobody = replace(V5E, options={**V5E.options, "service_account": ""})
    async with cloud_tpu(world, nobody) as google:
        await world.says("maya", "/benchmark resnet50 pairs=1 on=v5e-8")
        assert google.orders_taken == []
    assert "gcloud iam service-accounts create" in world.read()[0]


PAIR = Hardware(
    name="v4-16",
    backend="tpu",
    price_usd_per_hour=12.88,
    hosts=2,
    options={"tpu": "v4", "count": "8", "hosts": "2", "zones": "us-central1-a, us-west4-b"},
)


@told
async def test_a_slice_of_two_hosts(world: World) -> None:
    """One order brings both hosts; a late stock-out moves both to the next zone; they train together, once."""
    async with cloud_tpu(world, PAIR) as google:
        google.faults.late["us-central1-a"] = STOCK_OUT
        await world.says("maya", "/benchmark resnet50 pairs=1 on=v4-16")
        assert [zone for zone, _, _ in google.orders_taken] == ["us-central1-a", "us-west4-b"]
        async with world.services.database.read() as tx:
            machines = (await tx.scalars(select(Machine).order_by(Machine.id))).all()
        assert [(one.member, one.zone, one.state) for one in machines] == [
            (0, "us-west4-b", "gone"),
            (1, "us-west4-b", "gone"),
        ]
        assert machines[0].ordered_at == machines[1].ordered_at, "both are billed from their one order"
    results, *_ = world.read()
    assert "v4-16" in results
    assert "cost $" in results


@told
async def test_a_slice_whose_hosts_the_operator_miscounts(world: World) -> None:
    """Nothing is ordered, and the comment says which number is right."""
    async with cloud_tpu(world, replace(PAIR, hosts=1, options={**PAIR.options, "hosts": "1"})) as google:
        await world.says("maya", "/benchmark resnet50 pairs=1 on=v4-16")
        assert google.orders_taken == []
    assert "v4-16 has 2 hosts: set `hosts` to that" in world.read()[0]
