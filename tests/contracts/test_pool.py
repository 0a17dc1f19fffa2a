"""The pool: the backend over the real store and web with scripted hosts, and one lease with the real loop and agent."""

import asyncio
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.core.nouns import Hardware
from bot.store.hosts import all_hosts, invite, release, remove
from bot.web import hosts_api
from runners.agent import processes
from runners.backends.base import BackendError, BackendSettings
from runners.backends.pool import HostSilentError, PoolBackend
from runners.bundle import build_agent
from runners.spec import MachineOrder
from tests.harness.clouds import cloud_with
from tests.harness.pool import NAME, XPU, FakeHost, Hosts, Scene, alone, max1100
from tests.harness.world import Clock, World, open_world


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with alone(tmp_path) as made:
        yield made


async def test_a_machine_from_order_to_absence(scene: Scene) -> None:
    """Ordered twice it is one; running when the host says so; absent when the host has said that it is gone."""
    host = await scene.host()
    ordered = await scene.order()
    await scene.backend.create(ordered)
    await scene.backend.create(ordered)
    assert await scene.state() == ("starting", "")
    await scene.asks()
    assert await scene.state() == ("starting", "")
    start = host.held[NAME]["start"]
    assert (start["token"], start["environment"], start["devices"]) == ("token-1", {"ZE_AFFINITY_MASK": "0"}, 4)
    await scene.asks()
    assert await scene.state() == ("running", "")
    await scene.backend.create(ordered)
    assert "token-1" not in (await scene.row()).order, "from here on the token is on the host alone"
    (owned,) = await scene.backend.list_owned()
    assert (owned.name, owned.zone, owned.lease_id, owned.deadline_at) == (
        NAME,
        "max-1",
        ordered.lease_id,
        ordered.deadline_at,
    )
    assert await scene.backend.diagnose(NAME, "max-1") == "the agent's log"
    await scene.backend.delete(NAME, "max-1")
    assert await scene.state() == ("running", "")
    await scene.asks()
    assert await scene.state() == ("running", ""), "it has heard it, and has not said yet that it is done"
    await scene.asks()
    assert await scene.state() == ("absent", "")
    await scene.backend.delete(NAME, "max-1")
    assert await scene.backend.list_owned() == ()
    assert host.begun == [NAME]


async def test_offers_of_hosts_with_all_labels(scene: Scene) -> None:
    """Those that could begin now first, and of these the one that has rested longest."""
    for name in ("max-1", "max-2", "max-3"):
        await scene.host(name, labels=["xpu", "max1100"])
    await scene.host("old-1", labels=["xpu"])
    await scene.host("cpu-1", labels=["cpu"], devices=[])
    labels = {"labels": "max1100, xpu"}
    assert [offer.zone for offer in await scene.backend.offers(labels)] == ["max-1", "max-2", "max-3"]
    await scene.made()
    assert [offer.zone for offer in await scene.backend.offers(labels)] == ["max-2", "max-3", "max-1"]
    await scene.backend.delete(NAME, "max-1")
    await scene.asks()
    await scene.asks()
    scene.hosts.known["max-2"].silent = True
    await scene.asks(61)
    offers = await scene.backend.offers(labels)
    assert [offer.zone for offer in offers] == ["max-3", "max-1", "max-2"]
    assert (offers[0].scopes, offers[0].machine_type) == (("max-3",), "4 x Max 1100")


@pytest.mark.parametrize(
    ("devices", "options", "seen"),
    [
        (max1100(4), {}, ("xpu", 4)),
        (max1100(4), {"device": "xpu", "count": "1"}, ("xpu", 1)),
        (max1100(4), {"count": "2"}, ("xpu", 2)),
        (max1100(4), {"device": "none"}, ("", 0)),
        ([], {}, ("", 0)),
        ([*max1100(1), {"vendor": "nvidia", "name": "NVIDIA L4"}], {}, ("", 0)),
        ([*max1100(1), {"vendor": "nvidia", "name": "NVIDIA L4"}], {"device": "cuda"}, ("cuda", 1)),
    ],
)
async def test_what_frameworks_must_see(
    scene: Scene, devices: list[dict[str, Any]], options: dict[str, str], seen: tuple[str, int]
) -> None:
    """What the host has, unless the operator says otherwise."""
    await scene.host(devices=devices)
    (offer,) = await scene.backend.offers({**XPU, **options})
    assert (offer.device, offer.devices) == seen


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Set `labels`"),
        ({"labels": "h100"}, "No host of the pool has the labels h100"),
        ({"labels": "xpu", "device": "gpu"}, "`device` is one of"),
        ({"labels": "xpu", "count": "many"}, "whole number"),
    ],
)
async def test_an_operator_who_asked_for_what_is_not(scene: Scene, options: dict[str, str], said: str) -> None:
    await scene.host()
    with pytest.raises(BackendError, match=said) as refused:
        await scene.backend.offers(options)
    assert refused.value.code == "config"


async def test_a_command_without_a_pool(tmp_path: Path) -> None:
    backend = PoolBackend(BackendSettings(deployment="main", folder=tmp_path, clock=Clock(), options={}))
    with pytest.raises(BackendError, match="no pool"):
        await backend.offers(XPU)


async def refused(scene: Scene, order: MachineOrder) -> BackendError:
    with pytest.raises(BackendError) as no:
        await scene.backend.create(order)
    return no.value


async def test_refused_at_once(scene: Scene) -> None:
    """Busy, silent, ill: each is about that host alone."""
    host = await scene.host()
    await scene.made()
    other = replace(await scene.order(), name=f"{NAME}1")
    no = await refused(scene, other)
    assert (no.code, no.scope, no.sentence) == ("no_capacity", "max-1", "The host max-1 works for another lease.")
    await scene.backend.delete(NAME, "max-1")
    await scene.asks()
    await scene.asks()
    host.devices = max1100(4, "GPU is lost")
    await scene.asks()
    assert "GPU is lost" in (await refused(scene, other)).sentence
    scene.clock.now += 180
    assert "has not been heard of for 3 minutes" in (await refused(scene, other)).sentence
    assert await remove(scene.hosts.database, "max-1") == ""
    assert "not in the pool" in (await refused(scene, other)).sentence


async def test_strangers_code_needs_a_host_with_root(scene: Scene) -> None:
    await scene.host(isolates=False)
    no = await refused(scene, await scene.order(trusted=False))
    assert no.code == "config"
    assert "as root" in no.sentence
    await scene.backend.create(await scene.order(trusted=True))


async def test_it_is_not_fetched(scene: Scene) -> None:
    """The host is gone since it was asked last: no capacity, and the order is taken back at once."""
    host = await scene.host()
    host.silent = True
    await scene.backend.create(await scene.order())
    scene.clock.now += 61
    seen = await scene.backend.observe(NAME, "max-1")
    assert (seen.state, seen.code, seen.scope) == ("stopped", "no_capacity", "max-1")
    await scene.backend.delete(NAME, "max-1")
    assert await scene.state() == ("absent", "")
    host.silent = False
    await scene.asks()
    assert host.begun == []


async def test_it_is_fetched_and_never_begun(scene: Scene) -> None:
    """The answer may have been lost: it is sent again, and is absent only when the host has said that it has none."""
    host = await scene.host(never_begins=True)
    await scene.backend.create(await scene.order())
    await scene.asks()
    await scene.asks()
    await scene.asks(61)
    assert await scene.state() == ("stopped", "no_capacity")
    await scene.backend.delete(NAME, "max-1")
    assert (await scene.state())[0] != "absent"
    await scene.asks()
    assert await scene.state() == ("absent", "")
    assert host.begun == []


async def test_its_host_was_restarted(scene: Scene) -> None:
    host = await scene.host()
    await scene.made()
    host.restart()
    await scene.asks()
    assert await scene.state() == ("stopped", "agent_lost")
    assert "restarted" in (await scene.backend.observe(NAME, "max-1")).evidence


async def test_its_host_has_lost_its_memory(scene: Scene) -> None:
    """Another disk, the same credential."""
    host = await scene.host()
    await scene.made()
    host.held.clear()
    await scene.asks()
    assert await scene.state() == ("stopped", "agent_lost")
    assert host.begun == [NAME], "it is not begun a second time"


async def test_a_silent_host_keeps_its_order_until_it_is_surely_over(scene: Scene) -> None:
    """Its agent may run until the deadline; when it comes back later, it removes what it has."""
    host = await scene.host()
    await scene.made()
    host.silent = True
    scene.clock.now += 600
    await scene.backend.delete(NAME, "max-1")
    with pytest.raises(HostSilentError, match="10 minutes"):
        await scene.backend.observe(NAME, "max-1")
    assert [seen.name for seen in await scene.backend.list_owned()] == [NAME]
    scene.clock.now += 86_400
    assert await scene.state() == ("absent", "agent_lost")
    assert await scene.backend.list_owned() == ()
    host.silent = False
    await scene.asks()
    await scene.asks()
    assert (host.held, (await scene.row()).state) == ({}, "free")


async def test_faults_of_devices(scene: Scene) -> None:
    """The second one quarantines the host; it is used again when the operator says so, with what it has then."""
    host = await scene.host()
    for ill in (max1100(3), max1100(4, "memory Critical")):
        host.devices, host.then = max1100(4), ill
        await scene.asks()
        await scene.made()
        await scene.backend.delete(NAME, "max-1")
        await scene.asks()
        await scene.asks()
    row = await scene.row()
    assert (row.faults, row.quarantined) == (2, "2 device faults, the last one: Max 1100: memory Critical")
    host.devices = max1100(4)
    await scene.asks()
    with pytest.raises(BackendError, match="quarantined: 2 device faults") as no:
        await scene.backend.offers(XPU)
    assert no.value.code == "config"
    host.devices = max1100(3)
    await scene.asks()
    assert await release(scene.hosts.database, "max-1")
    await scene.backend.create(await scene.order())


async def test_a_host_that_refuses_for_its_devices(scene: Scene) -> None:
    """It has looked once more before it begins."""
    host = await scene.host()
    await scene.backend.create(await scene.order())
    host.devices = max1100(2)
    await scene.asks()
    await scene.asks()
    assert await scene.state() == ("stopped", "device_unhealthy")
    await scene.backend.delete(NAME, "max-1")
    await scene.asks()
    await scene.asks()
    assert (await scene.row()).faults == 1


async def test_codes(scene: Scene) -> None:
    """One works once, for an hour; the answer may be lost, and a new one takes the place of the old host."""
    host = await scene.host()
    code = {"code": "code-of-max-1"}
    await host.call(scene.session, scene.hosts.url, "enrol", code)
    thief = FakeHost("thief")
    await thief.call(scene.session, scene.hosts.url, "enrol", code)
    await thief.call(scene.session, scene.hosts.url, "enrol", {"code": "another"})
    await thief.call(scene.session, scene.hosts.url, "poll", {})
    assert host.statuses[-1] == 200
    assert thief.statuses == [403, 403, 401]
    await invite(scene.hosts.database, "id-2", "max-1", "code-2", scene.clock() + 3600)
    await scene.asks()
    assert host.statuses[-1] == 200, "until the new code is used"
    scene.clock.now += 3601
    await thief.call(scene.session, scene.hosts.url, "enrol", {"code": "code-2"})
    assert thief.statuses[-1] == 403
    row = await scene.row()
    kept = f"{row.code_hash} {row.credential_hash}"
    assert "code-2" not in kept
    assert host.credential not in kept


@pytest.mark.parametrize("body", ['{"labels": 7}', "[]", "no JSON", '{"holds": [{"order": "x", "state": "dancing"}]}'])
async def test_a_host_that_says_what_it_must_not(scene: Scene, body: str) -> None:
    host = await scene.host()
    url = f"{scene.hosts.url}/agent/v1/hosts/poll"
    headers = {"Authorization": f"Bearer {host.credential}"}
    async with scene.session.post(url, data=body, headers=headers) as answer:
        assert answer.status == 400
    assert (await scene.row()).state == "free"


# ---- the real loop and the real agent -------------------------------------------------------------------------------

CONFIG = """\
version: 1
benchmarks:
  resnet50:
    run: |
      TRAIN
    timeout: 5m
    hardware: [local, xpu]
    metrics:
      accuracy: {tag: accuracy, pick: last, better: higher, unit: pp, tolerance: 2, noise: 0.2, gate: true}
"""
TRAIN = (
    "id -u && touch /tmp/benchbot-stray-of-$(id -u) && "
    """echo '{{"step": 1, "accuracy": 90.0}}' > "$BENCHBOT_LOGDIR/metrics.jsonl\""""
)


def strays() -> list[str]:
    """What trainings have left where everybody may write; it is gone after the look."""
    found = list(Path("/tmp").glob("benchbot-stray-of-*"))
    for path in found:
        path.unlink()
    return [path.name for path in found]


class RealHost:
    """The loop as a process, in a folder that other users can get to."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, *more: str) -> None:
        """Start it; a second time it knows who it is."""
        bundle = self.folder / "agent.pyz"
        await asyncio.to_thread(bundle.write_bytes, build_agent())
        url = self.world.services.settings.agent_url
        words = [str(bundle), "--enrol", url, "--folder", str(self.folder / "host"), *more]
        shims = {"PATH": f"{self.folder}:/usr/local/bin:/usr/bin:/bin"}
        with (self.folder / "loop.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, *words, env=shims, stdout=log, stderr=log
            )

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Stop it; its exit status."""
        assert self.process
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 20)

    async def until(self, happened: Any) -> None:
        """Let the bot work in real time until something has happened."""
        for _ in range(3000):
            self.world.clock.now = time.time()
            await self.world.work()
            if await happened():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(await asyncio.to_thread((self.folder / "loop.log").read_text))

    def orders(self) -> list[Path]:
        """What it holds."""
        return list((self.folder / "host" / "orders").iterdir())


@pytest.fixture
def place() -> Iterator[Path]:
    """Not below the folder of the tests, which other users cannot enter."""
    folder = Path(tempfile.mkdtemp(prefix="benchbot-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    for pid in processes.working_in(folder):
        processes.send(pid, signal.SIGKILL)
    shutil.rmtree(folder)


@pytest.fixture
async def real(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RealHost]:
    """A world with one real host, which has an NVIDIA GPU by a shim."""
    monkeypatch.setattr(hosts_api, "POLL_S", 0.05)
    shim = place / "nvidia-smi"
    shim.write_text("#!/bin/sh\necho 'NVIDIA L4, 23034, 580.95.05, 0'\n")
    shim.chmod(0o755)
    # the GPU is not really there, and a PyTorch that does not see it would be told
    options = {"labels": "xpu", "device": "none", "base_environment": sys.prefix}
    hardware = Hardware(name="xpu", backend="pool", options=options)
    async with open_world(tmp_path / "world") as world:
        world.clock.now = time.time()
        settings = world.services.settings
        hosts = Hosts(world.clock, settings.database_url, settings.agent_url)
        made = RealHost(world, place)
        async with cloud_with(world, hardware, hosts):
            await invite(hosts.database, "id-1", "box-1", "code-1", world.clock() + 3600)
            # no scripted agent: the real one does it
            world.hold_agents = True
            yield made
            if made.process and made.process.returncode is None:
                await made.end(signal.SIGKILL)
        await hosts.close()


async def trains(world: World, lines: str) -> None:
    """A repository whose training is some lines of shell."""
    config = CONFIG.replace("TRAIN", lines).encode()
    await world.sandbox.push(world.repository, "maya", "main", {".github/benchmark.yml": config})
    await world.work()


async def rows(real: RealHost) -> Any:
    """The one host's row."""
    async with real.world.services.database.read() as tx:
        return (await all_hosts(tx))[0]


async def test_the_real_loop_and_the_real_agent(real: RealHost) -> None:
    """Enrolled with a code, one lease, results; nothing of it is left, and the caches stay."""
    world = real.world
    await trains(world, TRAIN)
    await real.start("--code", "code-1", "--labels", "xpu, l4")

    async def known() -> bool:
        return bool((await rows(real)).labels != "[]")

    await real.until(known)
    row = await rows(real)
    assert (json.loads(row.labels), row.most, row.isolates) == (["xpu", "l4"], 1, os.geteuid() == 0)
    credential = real.folder / "host" / "credential.json"
    assert stat.S_IMODE(credential.stat().st_mode) == 0o600
    assert "code-1" not in credential.read_text()
    await world.comment("maya", "/benchmark resnet50 pairs=1 on=xpu")

    async def done() -> bool:
        return (await rows(real)).state == "free" and any(request.state == "done" for request in await world.requests())

    await real.until(done)
    results = world.read()[-1]
    assert "no change" in results or "inconclusive" in results, results
    assert "failed" not in results
    users = {int(path.read_text().split()[0]) for path in (world.folder / "bot" / "artifacts").rglob("log.txt")}
    if os.geteuid() == 0:
        assert len(users) == 1
        assert min(users) >= 61200
    assert real.orders() == []
    assert (real.folder / "host" / "cache").is_dir()
    assert strays() == [] or os.geteuid() != 0
    assert await real.end() == 0


async def test_a_restart_in_the_middle(real: RealHost) -> None:
    """The loop alone ends: the lease goes on and is found again. Both end: the host says so and has cleaned up."""
    world = real.world
    await trains(world, "touch /tmp/benchbot-stray-of-$(id -u) begun.txt; sleep 600")
    await real.start("--code", "code-1", "--labels", "xpu")

    async def free() -> bool:
        return bool((await rows(real)).labels != "[]")

    await real.until(free)
    await world.comment("maya", "/benchmark resnet50 pairs=1 on=xpu")

    async def begun() -> bool:
        return bool(real.orders()) and bool(list(real.orders()[0].glob("lease/work/*/tree/begun.txt")))

    await real.until(begun)
    (folder,) = real.orders()
    assert await real.end() == 0
    assert processes.working_in(folder / "lease")
    await real.start()

    async def running() -> bool:
        row = await rows(real)
        return bool(row.state == "running" and row.seen_at > time.time() - 0.5)

    await real.until(running)
    await real.end(signal.SIGKILL)
    # what runs has the lease's folder in its environment or below its feet
    for pid in processes.working_in(folder / "lease"):
        processes.send(pid, signal.SIGKILL)
    await real.start()

    async def lost() -> bool:
        return bool((await rows(real)).code == "agent_lost") or not folder.exists()

    await real.until(lost)
    await world.comment("maya", "/benchmark cancel")

    async def empty() -> bool:
        return bool((await rows(real)).state == "free") and not real.orders()

    await real.until(empty)
    assert processes.working_in(folder) == []
    assert strays() == [] or os.geteuid() != 0


async def test_a_wrong_code(real: RealHost) -> None:
    """Said, and nothing is kept that would look enrolled."""
    await real.start("--code", "code-2")
    assert real.process
    assert await asyncio.wait_for(real.process.wait(), 20) == 3
    assert "could not be enrolled" in (real.folder / "loop.log").read_text()
    await real.start()
    assert await asyncio.wait_for(real.process.wait(), 20) == 2
    assert "benchbot pool add NAME" in (real.folder / "loop.log").read_text()
