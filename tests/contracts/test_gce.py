"""What is particular to instances of Compute Engine; what every backend owes is in `test_backends`."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from runners.backends.base import BackendError
from tests.contracts.clouds import NAME, first
from tests.harness.gce import IMAGE, PROJECT, ComputeEngine
from tests.harness.world import Clock

A100 = {"gpu": "a100", "zones": "us-central1-a, us-east1-b"}


@pytest.fixture
async def cloud() -> AsyncIterator[ComputeEngine]:
    engine = ComputeEngine(Clock())
    await engine.start()
    yield engine
    await engine.stop()
    assert engine.violations == []


async def test_what_an_instance_is_made_of(cloud: ComputeEngine, tmp_path: Path) -> None:
    """It ends itself, is never started again, has no account, and its image has a name of its own."""
    gce = cloud.backend(tmp_path)
    await gce.create(await first(gce, {**A100, "provisioning": "spot"}))
    body: dict[str, Any] = cloud.instances["us-central1-a", NAME].body
    assert body["machineType"].endswith("/a2-highgpu-1g")
    assert "guestAccelerators" not in body
    assert body["scheduling"]["provisioningModel"] == "SPOT"
    assert body["scheduling"]["instanceTerminationAction"] == "DELETE"
    assert int(body["scheduling"]["maxRunDuration"]["seconds"]) == 3600 + 900
    assert body["scheduling"]["automaticRestart"] is False
    assert "serviceAccounts" not in body
    assert body["disks"][0]["initializeParams"]["sourceImage"].endswith(IMAGE)
    metadata = {item["key"]: item["value"] for item in body["metadata"]["items"]}
    assert "token-1" not in metadata["startup-script"], "the console prints the script, not the token"
    assert metadata["benchbot-token"] == "token-1"


async def test_gpus_that_are_attached(cloud: ComputeEngine, tmp_path: Path) -> None:
    """T4 on N1."""
    gce = cloud.backend(tmp_path)
    options = {"gpu": "t4", "count": "2", "zones": "us-central1-a"}
    await gce.create(await first(gce, options))
    (attached,) = cloud.instances["us-central1-a", NAME].body["guestAccelerators"]
    assert attached["acceleratorType"].endswith("/nvidia-tesla-t4")
    assert attached["acceleratorCount"] == 2


async def test_offers_in_the_operators_order(cloud: ComputeEngine, tmp_path: Path) -> None:
    """Every zone as spot before the first one at the full price."""
    offers = await cloud.backend(tmp_path).offers({**A100, "provisioning": "spot, standard"})
    assert [(offer.zone, offer.provisioning) for offer in offers] == [
        ("us-central1-a", "spot"),
        ("us-east1-b", "spot"),
        ("us-central1-a", "standard"),
        ("us-east1-b", "standard"),
    ]
    assert offers[0].scopes == (PROJECT, "us-central1", "us-central1-a")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gpu": "a1000"}, "Set `machine_type`, or `gpu`"),
        ({"gpu": "h200"}, "h200 comes 8 to a machine, not 1"),
        ({"gpu": "l4", "count": "many"}, "whole number"),
        ({"gpu": "l4", "zones": "a-b-c", "provisioning": "cheap"}, "standard, spot, flex-start, not cheap"),
    ],
)
async def test_an_operator_who_asked_for_what_is_not(
    cloud: ComputeEngine, tmp_path: Path, options: dict[str, str], said: str
) -> None:
    """In words that say what to write."""
    with pytest.raises(BackendError) as refused:
        await cloud.backend(tmp_path).offers(options)
    assert refused.value.code == "config"
    assert said in refused.value.sentence


async def test_no_project(cloud: ComputeEngine, tmp_path: Path) -> None:
    """The first thing that an operator forgets."""
    with pytest.raises(BackendError, match=r"Set `project`"):
        await cloud.backend(tmp_path, project="").offers(A100)


async def test_a_disk_that_is_left_is_a_machine_still(cloud: ComputeEngine, tmp_path: Path) -> None:
    """A late refusal leaves it: it is seen, listed for the reaper, and deleted like an instance."""
    cloud.faults.leaves_disk = True
    cloud.faults.late["us-central1-a"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone has no A100 now.")
    backend = cloud.backend(tmp_path)
    await backend.create(await first(backend, A100))
    cloud.clock.now += 6  # type: ignore[attr-defined]
    seen = await backend.observe(NAME, "us-central1-a")
    assert (seen.state, seen.code) == ("stopped", "no_capacity")
    (owned,) = await backend.list_owned()
    assert (owned.name, owned.zone, owned.state, owned.evidence) == (
        NAME,
        "us-central1-a",
        "stopped",
        "its disk is left",
    )
    assert owned.deadline_at is not None
    await backend.delete(NAME, "us-central1-a")
    assert (await backend.observe(NAME, "us-central1-a")).state == "absent"
    assert (cloud.disks, await backend.list_owned()) == ({}, ())
