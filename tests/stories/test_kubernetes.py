"""Pods of a cluster: the real client against an API on loopback that Kubernetes' own schemas judge."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from bot.core.nouns import Hardware
from tests.harness.clouds import cloud_with
from tests.harness.kubernetes import IMAGE, KubernetesApi
from tests.harness.story import told
from tests.harness.world import World

L4 = Hardware(
    name="gke-l4", backend="kubernetes", price_usd_per_hour=0.71, options={"image": IMAGE, "gpu": "nvidia-l4"}
)
COMMAND = "/benchmark resnet50 pairs=1 on=gke-l4"


@asynccontextmanager
async def cluster(world: World, hosts: int = 1, **options: str) -> AsyncIterator[KubernetesApi]:
    """The world with the hardware gke-l4; at its end nothing but the network policy is left, and no call was wrong."""
    api = KubernetesApi(world.clock, boot_s=6.0, delete_s=3.0, queue_s=120.0)
    await api.start()
    try:
        chosen = {**L4.options, "hosts": str(hosts), **options}
        async with cloud_with(world, replace(L4, hosts=hosts, options=chosen), api):
            yield api
    finally:
        await api.stop()
    assert {plural for plural, things in api.objects.items() if things} <= {"networkpolicies", "events"}
    assert api.violations == []


@told
async def test_a_pod_from_order_to_results(world: World) -> None:
    """`on=gke-l4`: one Job is made, both sides run in its pod, it is deleted, and the comment says what it cost."""
    async with cluster(world) as kube:
        await world.says("maya", COMMAND)
        assert len(kube.made) == 1
    (results,) = world.read()
    assert "gke-l4" in results
    assert "cost $" in results or "cost under $0.01" in results
    assert "no change" in results or "inconclusive" in results


@told
async def test_a_node_is_made_first(world: World) -> None:
    """Nothing is free; the cluster makes a node within the operator's patience, and the same Job runs on it."""
    async with cluster(world) as kube:
        kube.faults.unschedulable = True
        world.hold_agents = True
        await world.says("maya", COMMAND)
        kube.faults.unschedulable = False
        world.hold_agents = False
        await world.settle()
        assert len(kube.made) == 1
    results = world.read()[-1]
    assert "no change" in results or "inconclusive" in results


@told
async def test_no_node_within_the_patience(world: World) -> None:
    """The Job is given up, the comment says what is waited for in the cluster's words, and a later one runs."""
    async with cluster(world, patience_s="10") as kube:
        kube.faults.unschedulable = True
        world.hold_agents = True
        await world.says("maya", COMMAND)
        assert "Insufficient nvidia.com/gpu" in world.read()[0]
        kube.faults.unschedulable = False
        world.hold_agents = False
        await world.settle()
        assert len(kube.made) == 2
    world.read()


@told
async def test_a_queue_lets_it_in(world: World) -> None:
    """Kueue keeps the Job for two minutes."""
    async with cluster(world, queue="team") as kube:
        began = world.clock.now
        await world.says("maya", COMMAND)
        assert len(kube.made) == 1
        assert world.clock.now - began >= 120.0
    results = world.read()[-1]
    assert "no change" in results or "inconclusive" in results


@told
async def test_evicted_in_the_middle(world: World) -> None:
    """The cluster takes the pod away while it runs: told as that, and nothing is left."""
    async with cluster(world) as kube:
        world.hold_agents = True
        await world.says("maya", COMMAND)
        (name,) = kube.made
        assert kube.pod(name)["status"]["phase"] == "Running"
        kube.evict(name)
        await world.settle(until=120.0)
        world.hold_agents = False
        await world.settle()
        assert len(kube.made) == 2, "a machine that was taken away is asked for once more"
    results = world.read()[-1]
    assert "no change" in results or "inconclusive" in results


@told
async def test_cancelled_while_it_is_pending(world: World) -> None:
    """No node has been found yet: the Job is deleted, and the check says cancelled."""
    async with cluster(world) as kube:
        kube.faults.unschedulable = True
        world.hold_agents = True
        await world.says("maya", COMMAND)
        assert len(kube.objects["pods"]) == 1
        await world.says("maya", "/benchmark cancel")
        await world.settle()
        assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_a_wrong_image(world: World) -> None:
    """No second try, and the reader is told which image it is."""
    async with cluster(world, image="ghcr.io/acme/trainr:1") as kube:
        await world.says("maya", COMMAND)
        assert len(kube.made) == 1
    assert "ghcr.io/acme/trainr:1" in world.read()[0]
    assert world.checks()["benchbot / resnet50"][1] not in (None, "success")


@told
async def test_two_hosts_train_together(world: World) -> None:
    """`hosts = 2`: one Indexed Job, an agent in each of its pods, one comment, and nothing left of both."""
    async with cluster(world, hosts=2) as kube:
        await world.says("maya", COMMAND)
        assert len(kube.made) == 1
    results = world.read()[0]
    assert "no change" in results or "inconclusive" in results
