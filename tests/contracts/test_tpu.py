"""The TPU backend with google-auth against a Cloud TPU on loopback, judged by Google's descriptions of the API."""

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from runners.backends.base import BackendError
from runners.backends.tpu import TpuBackend
from runners.google import CloudAwayError
from runners.spec import MachineOrder, Offer
from tests.harness.google import PROJECT
from tests.harness.tpu import ACCOUNT, CloudTpu, Fault

NAME = "bb-main-kfzrtnnpvreex5dktrwozzl6qv-0"
ZONE = "us-central1-a"
V5E = {"tpu": "v5e", "count": "8", "zones": f"{ZONE}, us-west4-b"}
SPOT = {**V5E, "provisioning": "spot"}
STOCK_OUT = Fault("RESOURCE_EXHAUSTED", "There is no more capacity in the zone.")
QUOTA = ({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"subject": "project"}]},)
RATE = ({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"},)


class Hand:
    """A clock that is moved by hand."""

    now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
async def cloud(clock: Hand) -> AsyncIterator[CloudTpu]:
    service = CloudTpu(clock)
    await service.start()
    yield service
    await service.stop()
    assert service.violations == []


async def first(tpu: TpuBackend, options: dict[str, str], *, trusted: bool = False) -> MachineOrder:
    """An order for the best offer."""
    return MachineOrder(
        name=NAME,
        deployment="main",
        lease_id="kfzrtnnpvreex5dktrwozzl6qv",
        server_url="https://bench.example.org",
        token="token-1",
        deadline_at=Hand.now + 3600,
        offer=(await tpu.offers(options))[0],
        options=options,
        trusted=trusted,
    )


async def state(tpu: TpuBackend) -> tuple[str, str]:
    seen = await tpu.observe(NAME, ZONE)
    return seen.state, seen.code


@pytest.mark.parametrize("options", [V5E, SPOT])
async def test_a_machine_from_order_to_absence(cloud: CloudTpu, tmp_path: Path, options: dict[str, str]) -> None:
    """Ordered twice it is one; listed once by its label; deleted until node and queued resource are absent."""
    tpu = cloud.backend(tmp_path)
    ordered = await first(tpu, options)
    await tpu.create(ordered)
    await tpu.create(ordered)
    assert len(cloud.orders_taken) == 1
    seen = await tpu.observe(NAME, ZONE)
    assert (seen.state, seen.lease_id, seen.deadline_at) == ("running", ordered.lease_id, ordered.deadline_at)
    (owned,) = await tpu.list_owned()
    assert (owned.name, owned.zone, owned.deadline_at) == (NAME, ZONE, ordered.deadline_at)
    assert "stage: booted" in await tpu.diagnose(NAME, ZONE)
    await tpu.delete(NAME, ZONE)
    assert await state(tpu) == ("absent", "")
    assert "no stage was reached" in await tpu.diagnose(NAME, ZONE)
    await tpu.delete(NAME, ZONE)
    assert await tpu.list_owned() == ()
    assert (cloud.nodes, cloud.queued) == ({}, {})


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
    cloud: CloudTpu, clock: Hand, tmp_path: Path, options: dict[str, str], kind: str, expected: Any
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
        ({"accelerator_type": "v5litepod-16"}, "v5e comes 1, 4, 8 chips to a machine, not 16"),
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


REFUSALS = [
    (STOCK_OUT, "no_capacity", ""),
    (Fault("FAILED_PRECONDITION", "Insufficient reserved capacity."), "no_capacity", ""),
    (Fault("INVALID_ARGUMENT", "An update is not supported while in state PREEMPTED."), "preempted", ""),
    (Fault("RESOURCE_EXHAUSTED", "Quota limit V5E has been exceeded in region us-central1."), "quota", "us-central1"),
    (Fault("RESOURCE_EXHAUSTED", "Limit 8 in zone us-central1-a.", QUOTA), "quota", ZONE),
    (Fault("PERMISSION_DENIED", "Permission 'tpu.nodes.create' denied"), "config", ""),
    (Fault("INVALID_ARGUMENT", "Runtime version is not valid."), "config", ""),
]


@pytest.mark.parametrize("options", [V5E, SPOT])
@pytest.mark.parametrize(("fault", "code", "scope"), REFUSALS)
async def test_refused_at_once(
    cloud: CloudTpu, tmp_path: Path, options: dict[str, str], fault: Fault, code: str, scope: str
) -> None:
    """Each with what is to be left alone for a while, and Google's own sentence."""
    cloud.faults.early[ZONE] = fault
    tpu = cloud.backend(tmp_path)
    with pytest.raises(BackendError) as refused:
        await tpu.create(await first(tpu, options))
    assert (refused.value.code, refused.value.scope) == (code, scope)
    assert fault.sentence in refused.value.sentence
    assert await state(tpu) == ("absent", "")


@pytest.mark.parametrize(
    ("options", "leaves", "told"),
    [
        *((V5E, "", told) for told in REFUSALS),
        *((SPOT, "", told) for told in REFUSALS),
        (SPOT, "", (Fault("INTERNAL", "Oh."), "no_capacity", "")),
        (V5E, "CREATING", REFUSALS[0]),
        (V5E, "PREEMPTED", REFUSALS[0]),
    ],
)
async def test_refused_after_it_was_accepted(
    cloud: CloudTpu, tmp_path: Path, options: dict[str, str], leaves: str, told: tuple[Fault, str, str]
) -> None:
    """The reply was good, the truth comes later; until then nothing is called absent, and what is left goes."""
    cloud.faults.late[ZONE], cloud.faults.leaves = told[0], leaves
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, options))
    assert (await tpu.observe(NAME, ZONE)).state in ("starting", "waiting")
    cloud.clock.now += 6  # type: ignore[attr-defined]
    seen = await tpu.observe(NAME, ZONE)
    assert seen.state == ("absent" if options is V5E and not leaves else "stopped")
    if leaves == "PREEMPTED":
        assert seen.code == "preempted"
    else:
        assert (seen.code, seen.scope, seen.evidence) == (*told[1:], told[0].sentence)
    await tpu.delete(NAME, ZONE)
    assert (await tpu.observe(NAME, ZONE)).state == "absent"
    assert (cloud.nodes, cloud.queued) == ({}, {})


@pytest.mark.parametrize("fault", [Fault("RESOURCE_EXHAUSTED", "Too fast.", RATE), Fault("UNAVAILABLE", "Not now.")])
async def test_come_again_later(cloud: CloudTpu, tmp_path: Path, fault: Fault) -> None:
    """A rate limit is no stock-out: the same order is repeated."""
    cloud.faults.early[ZONE] = fault
    tpu = cloud.backend(tmp_path)
    ordered = await first(tpu, V5E)
    with pytest.raises(CloudAwayError):
        await tpu.create(ordered)
    cloud.faults.early.clear()
    await tpu.create(ordered)


@pytest.mark.parametrize("options", [V5E, SPOT])
async def test_the_reply_of_an_order_is_lost(cloud: CloudTpu, tmp_path: Path, options: dict[str, str]) -> None:
    """The order stands; repeating it makes no second machine."""
    cloud.faults.lost_replies = 1
    tpu = cloud.backend(tmp_path)
    ordered = await first(tpu, options)
    with pytest.raises(OSError, match="cannot be reached"):
        await tpu.create(ordered)
    await tpu.create(ordered)
    assert len(cloud.orders_taken) == 1


@pytest.mark.parametrize("options", [V5E, SPOT])
async def test_deleting_fails_twenty_times(cloud: CloudTpu, tmp_path: Path, options: dict[str, str]) -> None:
    """Each time it is still there, and in the end it is gone."""
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, options))
    cloud.faults.failing_deletes = 20
    for _ in range(20):
        await tpu.delete(NAME, ZONE)
        assert await state(tpu) == ("running", "")
    await tpu.delete(NAME, ZONE)
    assert await state(tpu) == ("absent", "")


@pytest.mark.parametrize("options", [V5E, SPOT])
async def test_the_name_is_still_being_deleted(
    cloud: CloudTpu, clock: Hand, tmp_path: Path, options: dict[str, str]
) -> None:
    """Not absent before it is, and deleting it again harms nothing."""
    cloud.delete_s = 30
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, options))
    await state(tpu)
    await tpu.delete(NAME, ZONE)
    assert (await tpu.observe(NAME, ZONE)).state == "stopped"
    await tpu.delete(NAME, ZONE)
    clock.now += 31
    assert await state(tpu) == ("absent", "")


@pytest.mark.parametrize("options", [V5E, {**V5E, "queued": "true"}])
async def test_deleted_in_the_middle_of_the_order(
    cloud: CloudTpu, clock: Hand, tmp_path: Path, options: dict[str, str]
) -> None:
    """A node that is being made cannot be deleted yet, an order in the queue can: both are gone in the end."""
    cloud.boot_s, cloud.queue_s = 60, 600
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, options))
    await tpu.delete(NAME, ZONE)
    if options is V5E:
        assert await state(tpu) == ("starting", "")
        clock.now += 61
        await tpu.delete(NAME, ZONE)
    assert await state(tpu) == ("absent", "")
    assert (cloud.nodes, cloud.queued) == ({}, {})


@pytest.mark.parametrize("options", [V5E, SPOT])
async def test_preempted(cloud: CloudTpu, tmp_path: Path, options: dict[str, str]) -> None:
    """The cloud took it back: said so, not called lost; what it leaves holds quota and is deleted."""
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, options))
    await state(tpu)
    cloud.preempt(NAME)
    assert await state(tpu) == ("stopped", "preempted")
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


async def test_it_never_boots(cloud: CloudTpu, clock: Hand, tmp_path: Path) -> None:
    """Starting for ever: the bot's patience ends it, and it can be deleted."""
    cloud.faults.never_boots = True
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, SPOT))
    clock.now += 3000
    assert await state(tpu) == ("starting", "")
    await tpu.delete(NAME, ZONE)
    assert await state(tpu) == ("absent", "")


async def test_nobody_is_there_for_a_day(cloud: CloudTpu, clock: Hand, tmp_path: Path) -> None:
    """A node stays, and is found with the deadline that it is past."""
    tpu = cloud.backend(tmp_path)
    await tpu.create(await first(tpu, V5E))
    clock.now += 86_400
    (left,) = await cloud.backend(tmp_path).list_owned()
    assert (left.name, left.state, left.deadline_at) == (NAME, "running", Hand.now + 3600)


@pytest.mark.parametrize("options", [{"provisioning": "flex-start"}, {"queued": "true"}])
async def test_what_ends_without_the_bot(cloud: CloudTpu, clock: Hand, tmp_path: Path, options: dict[str, str]) -> None:
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


async def test_a_key_that_is_not_known(cloud: CloudTpu, tmp_path: Path) -> None:
    """401 is the operator's to mend, and so is a key that is none."""
    tpu = cloud.backend(tmp_path)
    (tmp_path / "tpu-key.json").write_text(json.dumps(cloud.credentials(known=False)))
    with pytest.raises(BackendError, match="authentication"):
        await tpu.list_owned()
    (tmp_path / "tpu-key.json").write_text("{}")
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
