"""Machines of clouds: Google's own clients against stand-ins that Google's own descriptions judge."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.core.nouns import Hardware
from tests.harness.clouds import cloud_with
from tests.harness.gce import ComputeEngine
from tests.harness.story import story, told
from tests.harness.world import World

A100 = Hardware(
    name="a100x1",
    backend="gce",
    price_usd_per_hour=3.67,
    options={"gpu": "a100", "zones": "us-central1-a, us-central1-f, us-east1-b"},
)


@asynccontextmanager
async def compute_engine(world: World) -> AsyncIterator[ComputeEngine]:
    """The world with the hardware a100x1; at its end no instance may be left, and no call may have been wrong."""
    engine = ComputeEngine(world.clock, boot_s=20.0, delete_s=5.0)
    await engine.start()
    try:
        async with cloud_with(world, A100, engine):
            yield engine
    finally:
        await engine.stop()
    assert (engine.instances, engine.disks) == ({}, {}), "machines or their disks are left"
    assert engine.violations == []


@story
async def test_a_gpu_from_order_to_results(world: World) -> None:
    """`on=a100x1`: one instance is made, both sides run on it, it is deleted, and the comment says what it cost."""
    async with compute_engine(world) as google:
        await world.says("maya", "/benchmark resnet50 pairs=1 on=a100x1")
        assert len(google.inserts) == 1
    (results,) = world.read()
    assert "a100x1" in results
    assert "cost $" in results or "cost under $0.01" in results
    assert "no change" in results or "inconclusive" in results


@story
async def test_a_stock_out_that_is_told_late(world: World) -> None:
    """Accepted, refused seconds later, made in another region; a quota closes the whole region at once."""
    async with compute_engine(world) as google:
        google.faults.late["us-central1-a"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone has no A100 now.")
        google.faults.early["us-central1-f"] = (403, "quotaExceeded", "Quota exceeded in region us-central1.")
        await world.says("maya", "/benchmark resnet50 pairs=1 on=a100x1")
        assert google.inserts[-1][0] == "us-east1-b"
    (results,) = world.read()
    assert "no change" in results or "inconclusive" in results


@told
async def test_a_refusal_that_leaves_a_disk(world: World) -> None:
    """The first zone has made the disk when it finds that it has no GPU: both zones are empty in the end."""
    async with compute_engine(world) as google:
        google.faults.leaves_disk = True
        google.faults.late["us-central1-a"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone has no A100 now.")
        await world.says("maya", "/benchmark resnet50 pairs=1 on=a100x1")
        assert [zone for zone, _ in google.inserts] == ["us-central1-a", "us-central1-f"]
    (results,) = world.read()
    assert "no change" in results or "inconclusive" in results


@told
async def test_no_zone_has_one(world: World) -> None:
    """What is waited for stands in the comment, in Google's words; the first zone that has one gives it."""
    async with compute_engine(world) as google:
        for zone in ("us-central1-a", "us-central1-f", "us-east1-b"):
            google.faults.late[zone] = ("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone has no A100 now.")
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=a100x1")
        assert {zone for zone, _ in google.inserts} == set(google.faults.late)
        assert "The zone has no A100 now" in world.read()[0]
        google.faults.late.clear()
        world.hold_agents = False
        await world.settle()


@told
async def test_cancelled_in_the_middle_of_the_order(world: World) -> None:
    """The instance is still being made: it is deleted when it can be, and the check says cancelled."""
    async with compute_engine(world) as google:
        google.faults.never_boots = True
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=a100x1")
        assert len(google.instances) == 1
        await world.says("maya", "/benchmark cancel")
        await world.settle()
        assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_the_operators_key_is_refused(world: World) -> None:
    """No machine, and the reader is told whose it is to mend."""
    async with compute_engine(world) as google:
        google.faults.early = dict.fromkeys(
            ("us-central1-a", "us-central1-f", "us-east1-b"), (403, "forbidden", "Required 'compute.instances.create'")
        )
        await world.says("maya", "/benchmark resnet50 pairs=1 on=a100x1")
        assert google.inserts == []
    assert "compute.instances.create" in world.read()[0]
    assert world.checks()["benchbot / resnet50"][1] not in (None, "success")
