"""The GCE backend with Google's own client against a Compute Engine on loopback, judged by Google's description."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from runners.backends.base import BackendError
from runners.backends.gce import CloudAwayError, GceBackend
from runners.spec import MachineOrder, Offer
from tests.harness.gce import IMAGE, PROJECT, ComputeEngine

NAME = "bb-main-kfzrtnnpvreex5dktrwozzl6qv-0"
A100 = {"gpu": "a100", "zones": "us-central1-a, us-east1-b"}


class Hand:
    """A clock that is moved by hand."""

    now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def cloud() -> AsyncIterator[ComputeEngine]:
    engine = ComputeEngine(Hand())
    await engine.start()
    yield engine
    await engine.stop()
    assert engine.violations == []


def backend(cloud: ComputeEngine, folder: Path, **options: str) -> GceBackend:
    return cloud.backend(folder, **options)


def order(offer: Offer, options: dict[str, str], *, attempt: int = 1, trusted: bool = False) -> MachineOrder:
    return MachineOrder(
        name=NAME,
        deployment="main",
        lease_id="kfzrtnnpvreex5dktrwozzl6qv",
        server_url="https://bench.example.org",
        token="token-1",
        deadline_at=Hand.now + 3600,
        offer=offer,
        attempt=attempt,
        options=options,
        trusted=trusted,
    )


async def first(gce: GceBackend, options: dict[str, str]) -> MachineOrder:
    return order((await gce.offers(options))[0], options)


async def test_a_machine_from_order_to_absence(cloud: ComputeEngine, tmp_path: Path) -> None:
    """Ordered twice it is one; listed by its label; deleted until it is absent."""
    gce = backend(cloud, tmp_path)
    ordered = await first(gce, A100)
    await gce.create(ordered)
    await gce.create(ordered)
    assert cloud.inserts == [("us-central1-a", NAME)]
    seen = await gce.observe(NAME, "us-central1-a")
    assert (seen.state, seen.lease_id, seen.deadline_at) == ("running", ordered.lease_id, ordered.deadline_at)
    (owned,) = await gce.list_owned()
    assert (owned.name, owned.zone) == (NAME, "us-central1-a")
    assert "stage: booted" in await gce.diagnose(NAME, "us-central1-a")
    await gce.delete(NAME, "us-central1-a")
    assert (await gce.observe(NAME, "us-central1-a")).state == "absent"
    await gce.delete(NAME, "us-central1-a")
    assert await gce.list_owned() == ()


async def test_what_an_instance_is_made_of(cloud: ComputeEngine, tmp_path: Path) -> None:
    """It ends itself, is never started again, has no account, and its image has a name of its own."""
    gce = backend(cloud, tmp_path)
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
    gce = backend(cloud, tmp_path)
    options = {"gpu": "t4", "count": "2", "zones": "us-central1-a"}
    await gce.create(await first(gce, options))
    (attached,) = cloud.instances["us-central1-a", NAME].body["guestAccelerators"]
    assert attached["acceleratorType"].endswith("/nvidia-tesla-t4")
    assert attached["acceleratorCount"] == 2


async def test_offers_in_the_operators_order(cloud: ComputeEngine, tmp_path: Path) -> None:
    """Every zone as spot before the first one at the full price."""
    offers = await backend(cloud, tmp_path).offers({**A100, "provisioning": "spot, standard"})
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
        await backend(cloud, tmp_path).offers(options)
    assert refused.value.code == "config"
    assert said in refused.value.sentence


@pytest.mark.parametrize(
    ("answer", "code", "scope"),
    [
        ((503, "", "The zone does not have enough resources available"), "no_capacity", ""),
        ((403, "quotaExceeded", "Quota 'NVIDIA_A100_GPUS' exceeded in region us-central1."), "quota", "us-central1"),
        ((403, "quotaExceeded", "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."), "quota", PROJECT),
        ((403, "forbidden", "Required 'compute.instances.create' permission"), "config", ""),
        ((400, "invalid", "The resource 'subnetworks/x' is invalid"), "config", ""),
    ],
)
async def test_refused_at_once(
    cloud: ComputeEngine, tmp_path: Path, answer: tuple[int, str, str], code: str, scope: str
) -> None:
    """Each with what is to be left alone for a while, and Google's own sentence."""
    cloud.faults.early["us-central1-a"] = answer
    gce = backend(cloud, tmp_path)
    with pytest.raises(BackendError) as refused:
        await gce.create(await first(gce, A100))
    assert (refused.value.code, refused.value.scope) == (code, scope)
    assert answer[2] in refused.value.sentence
    assert (await gce.observe(NAME, "us-central1-a")).state == "absent"


async def test_come_again_later(cloud: ComputeEngine, tmp_path: Path) -> None:
    """A rate limit is no stock-out: the same order is repeated."""
    cloud.faults.early["us-central1-a"] = (403, "rateLimitExceeded", "Rate Limit Exceeded")
    gce = backend(cloud, tmp_path)
    with pytest.raises(CloudAwayError):
        await gce.create(await first(gce, A100))
    cloud.faults.early.clear()
    await gce.create(await first(gce, A100))


@pytest.mark.parametrize(
    ("fault", "code", "scope"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", "no_capacity", ""),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "no_capacity", ""),
        ("QUOTA_EXCEEDED", "quota", "us-central1"),
        ("UNSUPPORTED_OPERATION", "no_capacity", ""),
    ],
)
async def test_refused_after_it_was_accepted(
    cloud: ComputeEngine, tmp_path: Path, fault: str, code: str, scope: str
) -> None:
    """The reply was good; the operation tells the truth seconds later, and until then nothing is called absent."""
    cloud.faults.late["us-central1-a"] = (fault, "It is not to be had.")
    gce = backend(cloud, tmp_path)
    await gce.create(await first(gce, A100))
    assert (await gce.observe(NAME, "us-central1-a")).state == "starting"
    await gce.delete(NAME, "us-central1-a")
    assert (await gce.observe(NAME, "us-central1-a")).state == "starting"
    cloud.clock.now += 6  # type: ignore[attr-defined]
    seen = await gce.observe(NAME, "us-central1-a")
    assert (seen.state, seen.code, seen.scope, seen.evidence) == ("absent", code, scope, "It is not to be had.")


async def test_the_reply_of_an_order_is_lost(cloud: ComputeEngine, tmp_path: Path) -> None:
    """The order stands; repeating it makes no second machine."""
    cloud.faults.lost_replies = 1
    gce = backend(cloud, tmp_path)
    ordered = await first(gce, A100)
    with pytest.raises(OSError, match="cannot be reached"):
        await gce.create(ordered)
    await gce.create(ordered)
    assert cloud.inserts == [("us-central1-a", NAME)]


async def test_deleting_fails_twenty_times(cloud: ComputeEngine, tmp_path: Path) -> None:
    """Each time it says so, and in the end the machine is gone."""
    gce = backend(cloud, tmp_path)
    await gce.create(await first(gce, A100))
    cloud.faults.failing_deletes = 20
    for _ in range(20):
        await gce.delete(NAME, "us-central1-a")
        assert (await gce.observe(NAME, "us-central1-a")).state == "running"
    await gce.delete(NAME, "us-central1-a")
    assert (await gce.observe(NAME, "us-central1-a")).state == "absent"


async def test_preempted(cloud: ComputeEngine, tmp_path: Path) -> None:
    """The cloud took it back: said so, and not called lost."""
    gce = backend(cloud, tmp_path)
    await gce.create(await first(gce, {**A100, "provisioning": "spot"}))
    cloud.preempt(NAME)
    seen = await gce.observe(NAME, "us-central1-a")
    assert (seen.state, seen.code) == ("absent", "preempted")


async def test_nobody_deletes_it_and_it_goes(cloud: ComputeEngine, tmp_path: Path) -> None:
    """The bot is dead for a day: the machine's own limit ends it."""
    gce = backend(cloud, tmp_path)
    await gce.create(await first(gce, A100))
    cloud.clock.now += 86_400  # type: ignore[attr-defined]
    assert (await gce.observe(NAME, "us-central1-a")).state == "absent"


async def test_machines_of_other_deployments_are_not_ours(cloud: ComputeEngine, tmp_path: Path) -> None:
    """The label decides."""
    gce = backend(cloud, tmp_path)
    await gce.create(await first(gce, A100))
    cloud.instances["us-central1-a", NAME].body["labels"]["benchbot"] = "other"
    assert await gce.list_owned() == ()


async def test_a_key_that_is_not_known(cloud: ComputeEngine, tmp_path: Path) -> None:
    """401 is the operator's to mend."""
    gce = backend(cloud, tmp_path)
    (tmp_path / "gce-key.json").write_text(json.dumps(cloud.credentials(known=False)))
    with pytest.raises(BackendError) as refused:
        await gce.list_owned()
    assert refused.value.code == "config"
    assert "authentication" in refused.value.sentence


async def test_no_project(cloud: ComputeEngine, tmp_path: Path) -> None:
    """The first thing that an operator forgets."""
    with pytest.raises(BackendError, match=r"Set `project`"):
        await backend(cloud, tmp_path, project="").offers(A100)
