"""What is particular to machines of Cloud TPU; what every backend owes is in `test_backends`."""

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners.backends.base import BackendError
from runners.backends.tpu import TpuBackend
from runners.spec import Offer
from tests.contracts.clouds import LEASE, NAME, first
from tests.harness.google import PROJECT
from tests.harness.tpu import ACCOUNT, CloudTpu, Fault
from tests.harness.world import Clock

ZONE = "us-central1-a"
V5E = {"tpu": "v5e", "count": "8", "zones": f"{ZONE}, us-west4-b"}
SPOT = {**V5E, "provisioning": "spot"}
STOCK_OUT = Fault("RESOURCE_EXHAUSTED", "There is no more capacity in the zone.")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def cloud(clock: Clock) -> AsyncIterator[CloudTpu]:
    service = CloudTpu(clock)
    await service.start()
    yield service
    await service.stop()
    assert service.violations == []


async def state(tpu: TpuBackend) -> tuple[str, str]:
    seen = await tpu.observe(NAME, ZONE)
    return seen.state, seen.code


async def test_what_a_node_is_made_of(cloud: CloudTpu, tmp_path: Path) -> None:
    """Its account is the one without roles, and its script holds no token."""
    tpu = cloud.backend(tmp_path)
    options = {**V5E, "network": "bench", "subnetwork": "bench-1", "external_ip": "false"}
    await tpu.create(await first(tpu, options))
    body: dict[str, Any] = cloud.nodes[ZONE, NAME].body
    assert (body["acceleratorType"], body["runtimeVersion"]) == ("v5litepod-8", "v2-alpha-tpuv5-lite")
    assert body["serviceAccount"] == {"email": ACCOUNT}
    assert body["networkConfig"] == {"network": "bench", "subnetwork": "bench-1", "enableExternalIps": False}
    assert "token-1" not in body["metadata"]["startup-script"]
    assert body["metadata"]["benchbot-token"] == "token-1"
    assert "token-1" not in json.dumps(body["labels"])


@pytest.mark.parametrize(
    ("options", "kind", "expected"),
    [
        ({"provisioning": "spot"}, "spot", {}),
        ({"provisioning": "standard", "queued": "true"}, "queueingPolicy", {"validUntilTime": "2026-09-21T15:13:20Z"}),
        (
            {"provisioning": "reserved", "reservation": "ours"},
            "reservationName",
            f"projects/{PROJECT}/locations/{ZONE}/reservations/ours",
        ),
        ({"provisioning": "flex-start"}, "runDuration", {"maxRunDuration": "4500s"}),
    ],
)
async def test_orders_that_stand_in_the_queue(
    cloud: CloudTpu, clock: Clock, tmp_path: Path, options: dict[str, str], kind: str, expected: Any
) -> None:
    """Waiting, then starting, then running; the order says until when it may wait, flex-start how long it runs."""
    cloud.queue_s, cloud.boot_s = 600, 60
    tpu = cloud.backend(tmp_path)
    ordered = await first(tpu, {**V5E, **options})
    assert ordered.offer.queued
    await tpu.create(ordered)
    assert cloud.queued[ZONE, NAME].body[kind] == expected
    assert await state(tpu) == ("waiting", "")
    (owned,) = await tpu.list_owned()
    assert (owned.state, owned.lease_id) == ("waiting", ordered.lease_id)
    clock.now += 601
    assert await state(tpu) == ("starting", "")
    clock.now += 61
    assert await state(tpu) == ("running", "")
    await tpu.delete(NAME, ZONE)


async def test_offers_in_the_operators_order(cloud: CloudTpu, tmp_path: Path) -> None:
    """Every zone as spot before the first one at the full price."""
    offers = await cloud.backend(tmp_path).offers({**V5E, "provisioning": "spot, standard"})
    assert [(offer.zone, offer.provisioning, offer.queued) for offer in offers] == [
        (ZONE, "spot", True),
        ("us-west4-b", "spot", True),
        (ZONE, "standard", False),
        ("us-west4-b", "standard", False),
    ]
    assert offers[0].scopes == (PROJECT, "us-central1", ZONE)


@pytest.mark.parametrize(
    ("options", "machine_type"),
    [
        ({"tpu": "v2", "count": "4"}, "v2-8"),
        ({"tpu": "v6e"}, "v6e-1"),
        ({"accelerator_type": "v5p-8"}, "v5p-8"),
        ({"tpu": "v5e", "count": "16", "hosts": "4"}, "v5litepod-16"),
        ({"accelerator_type": "v9x-4", "runtime_version": "v9"}, "v9x-4"),
    ],
)
async def test_types(cloud: CloudTpu, tmp_path: Path, options: dict[str, str], machine_type: str) -> None:
    """By chips, or by Google's name; an unknown generation only with its runtime version."""
    (offer,) = await cloud.backend(tmp_path).offers({**options, "zones": ZONE})
    assert offer.machine_type == machine_type


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tpu": "v1"}, "Set `tpu` to one of v2"),
        ({"accelerator_type": "v9x-4"}, "`accelerator_type` and `runtime_version`"),
        ({"accelerator_type": "v5litepod-18"}, "v5e comes 1, 4, 8 chips to a host, or more as a multiple of 4, not 18"),
        ({"tpu": "v4", "count": "2"}, "v4 comes 4 chips to a host"),
        ({"tpu": "v4", "count": "8"}, "v4-16 has 2 hosts: set `hosts` to that"),
        ({"tpu": "v5e", "count": "many"}, "whole number"),
        ({"tpu": "v5e", "provisioning": "cheap"}, "standard, spot, reserved, flex-start, not cheap"),
        ({"tpu": "v5e", "service_account": ""}, "gcloud iam service-accounts create"),
        ({"tpu": "v5e", "service_account": "1-compute@developer.gserviceaccount.com"}, "without roles"),
    ],
)
async def test_an_operator_who_asked_for_what_is_not(
    cloud: CloudTpu, tmp_path: Path, options: dict[str, str], said: str
) -> None:
    """In words that say what to write."""
    with pytest.raises(BackendError) as refused:
        await cloud.backend(tmp_path).offers({"zones": ZONE, **options})
    assert refused.value.code == "config"
    assert said in refused.value.sentence


@pytest.mark.parametrize(
    ("options", "leaves", "expected"),
    [
        (V5E, "", ("absent", "no_capacity")),
        (SPOT, "", ("stopped", "no_capacity")),
        (V5E, "CREATING", ("stopped", "no_capacity")),
        (V5E, "PREEMPTED", ("stopped", "preempted")),
    ],
)
async def test_what_a_refused_order_leaves(
    cloud: CloudTpu, clock: Clock, tmp_path: Path, options: dict[str, str], leaves: str, expected: tuple[str, str]
) -> None:
    """A node that stays after its creation has failed, and a queued resource, hold quota: they are not absent."""
    cloud.faults.late[ZONE], cloud.faults.leaves = STOCK_OUT, leaves
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, options))
    clock.now += 6
    assert await state(tpu) == expected
    await tpu.delete(NAME, ZONE)
    assert (await tpu.observe(NAME, ZONE)).state == "absent"
    assert (cloud.nodes, cloud.queued) == ({}, {})


async def test_an_order_in_the_queue_is_deleted(cloud: CloudTpu, tmp_path: Path) -> None:
    """At once, unlike a node that is being made."""
    cloud.queue_s = 600
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, {**V5E, "queued": "true"}))
    await tpu.delete(NAME, ZONE)
    assert await state(tpu) == ("absent", "")
    assert (cloud.nodes, cloud.queued) == ({}, {})


async def test_a_node_outlives_its_queued_resource(cloud: CloudTpu, tmp_path: Path) -> None:
    """Whatever the cause: it is still ours, and goes."""
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, SPOT))
    await state(tpu)
    cloud.queued.clear()
    assert await state(tpu) == ("running", "")
    await tpu.delete(NAME, ZONE)
    assert await state(tpu) == ("absent", "")


@pytest.mark.parametrize("options", [{"provisioning": "flex-start"}, {"queued": "true"}])
async def test_what_ends_without_the_bot(
    cloud: CloudTpu, clock: Clock, tmp_path: Path, options: dict[str, str]
) -> None:
    """A flex-start node after its run duration, and an order that waits past its deadline."""
    cloud.queue_s = 100_000 if "queued" in options else 0
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, {**V5E, **options}))
    await state(tpu)
    clock.now += 86_400
    assert (await tpu.observe(NAME, ZONE)).state == "stopped"
    assert cloud.nodes == {}


async def test_machines_everywhere_are_listed_and_others_are_not(cloud: CloudTpu, tmp_path: Path) -> None:
    """The label decides, not the zone that is configured now."""
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, {**V5E, "zones": "europe-west4-b"}))
    await tpu.create(await first(tpu, {**SPOT, "zones": "asia-east1-c"}))
    await tpu.create(await first(tpu, V5E))
    cloud.nodes[ZONE, NAME].body["labels"]["benchbot"] = "other"
    owned = await tpu.list_owned()
    assert sorted(seen.zone for seen in owned) == ["asia-east1-c", "europe-west4-b"]


async def test_a_key_that_is_none(cloud: CloudTpu, tmp_path: Path) -> None:
    """The operator's to mend."""
    with pytest.raises(BackendError, match="no readable key"):
        await cloud.backend(tmp_path, credentials_file=str(tmp_path / "none.json")).list_owned()


async def test_no_project(cloud: CloudTpu, tmp_path: Path) -> None:
    """The first thing that an operator forgets."""
    with pytest.raises(BackendError, match=r"Set `project`"):
        await cloud.backend(tmp_path, project="").offers(V5E)


async def test_the_script_is_a_script(cloud: CloudTpu, tmp_path: Path) -> None:
    """Bash reads it; what it writes for the code says what the closed metadata server would."""
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, V5E, trusted=True))
    script = cloud.nodes[ZONE, NAME].body["metadata"]["startup-script"]
    bash = await asyncio.create_subprocess_exec("bash", "-n", stdin=PIPE)
    await bash.communicate(script.encode())
    assert bash.returncode == 0
    assert "nvidia-smi" not in script
    assert '"$found" -ge 8' in script
    said = json.loads(script.partition("<<'END'\n")[2].partition("\nEND\n")[0])
    assert said["TPU_ACCELERATOR_TYPE"] == "v5litepod-8"
    assert said["TPU_CHIPS_PER_HOST_BOUNDS"] == "2,4,1"


async def test_an_offer_of_another_zone_is_no_offer(cloud: CloudTpu, tmp_path: Path) -> None:
    """Without zones there is none; the bot says so."""
    assert await cloud.backend(tmp_path).offers({"tpu": "v5e"}) == ()
    assert isinstance((await cloud.backend(tmp_path).offers(V5E))[0], Offer)


# ---- several hosts --------------------------------------------------------------------------------------------------

SLICE = {"tpu": "v4", "count": "8", "hosts": "2", "zones": ZONE}


@pytest.mark.parametrize("more", [{}, {"provisioning": "spot"}])
async def test_a_slice_is_one_node_and_a_machine_for_each_host(
    cloud: CloudTpu, tmp_path: Path, more: dict[str, str]
) -> None:
    """The first host's order brings both, both are seen and listed, and the first one's deletion takes both."""
    backend = cloud.backend(tmp_path)
    order = replace(await first(backend, {**SLICE, **more}), name=f"{NAME}-0")
    assert (order.offer.machine_type, order.offer.one_order, order.offer.devices) == ("v4-16", True, 4)
    await backend.create(order)
    second = replace(order, name=f"{NAME}-1", member=1)
    await backend.create(second)
    assert len(cloud.orders_taken) == 1
    assert {key for _, key in cloud.nodes or cloud.queued} == {NAME}
    names = [order.name, second.name]
    assert [(await backend.observe(name, ZONE)).state for name in names] == ["running", "running"]
    assert [(seen.name, seen.lease_id) for seen in await backend.list_owned()] == [(name, LEASE) for name in names]
    assert "stage: booted" in await backend.diagnose(second.name, ZONE)
    await backend.delete(second.name, ZONE)
    assert [(await backend.observe(name, ZONE)).state for name in names] == ["running", "running"]
    await backend.delete(order.name, ZONE)
    cloud.clock.now += 60  # type: ignore[attr-defined]
    assert [(await backend.observe(name, ZONE)).state for name in names] == ["absent", "absent"]
    assert await backend.list_owned() == ()


async def test_a_slice_that_is_refused_late(cloud: CloudTpu, tmp_path: Path) -> None:
    """Each of its hosts is refused with it."""
    cloud.faults.late[ZONE] = Fault("RESOURCE_EXHAUSTED", "There is no more capacity in the zone us-central1-a.")
    backend = cloud.backend(tmp_path)
    await backend.create(replace(await first(backend, SLICE), name=f"{NAME}-0"))
    cloud.clock.now += 6  # type: ignore[attr-defined]
    for host in (0, 1):
        seen = await backend.observe(f"{NAME}-{host}", ZONE)
        assert (seen.state, seen.code) == ("absent", "no_capacity")
