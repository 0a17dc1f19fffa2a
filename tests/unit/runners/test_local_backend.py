"""The local backend: machines that are processes, made once, found again, and gone without a trace."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from runners.agent import processes
from runners.backends.base import BackendError, BackendSettings
from runners.backends.local import LocalBackend
from runners.spec import MachineOrder, Offer
from tests.harness.agent_server import TOKEN
from tests.unit.runners.conftest import Scene

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user for a lease can only be had as root")


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[LocalBackend]:
    made = _backend(tmp_path / "machines")
    yield made
    for sighting in await made.list_owned():
        await made.delete(sighting.name, "")
    made.clear()
    assert not made.folder.exists()


def _backend(folder: Path, **options: str) -> LocalBackend:
    told = {"trust_all": "true", "base_environment": sys.prefix, **options}
    deployment = f"t{os.getpid()}"
    return LocalBackend(BackendSettings(deployment=deployment, folder=folder, clock=time.time, options=told))


def _order(
    backend: LocalBackend, scene: Scene, name: str = "one", *, trusted: bool = True, **options: str
) -> MachineOrder:
    return MachineOrder(
        name=f"bb-{backend.settings.deployment}-{name}",
        deployment=backend.settings.deployment,
        lease_id="L1",
        server_url=scene.server.url,
        token=TOKEN,
        deadline_at=time.time() + 300,
        offer=Offer(backend="local"),
        options=options,
        trusted=trusted,
    )


async def _until_ended(backend: LocalBackend, name: str) -> None:
    for _ in range(600):
        if (await backend.observe(name, "")).state == "stopped":
            return
        await asyncio.sleep(0.05)
    raise AssertionError(await backend.diagnose(name, ""))


async def test_a_lease_from_order_to_nothing(backend: LocalBackend, scene: Scene) -> None:
    order = _order(backend, scene)
    assert (await backend.observe(order.name, "")).state == "absent"
    scene.plan(
        scene.run("r1", "echo head; id -u"), scene.run("r2", "echo base", side="base"), setup="", setup_inputs=[]
    )
    await backend.create(order)
    await backend.create(order)
    assert [sighting.name for sighting in await backend.list_owned()] == [order.name]
    # another process of the bot finds the same machine
    other = _backend(backend.settings.folder)
    assert [(each.lease_id, each.deadline_at) for each in await other.list_owned()] == [("L1", order.deadline_at)]
    await _until_ended(backend, order.name)
    await backend.create(order)
    assert len(scene.server.nonces) == 1
    assert scene.server.text("r1", "log.txt").startswith("head")
    assert scene.server.text("r2", "log.txt") == "base\n"
    await backend.delete(order.name, "")
    await backend.delete(order.name, "")
    assert (await backend.observe(order.name, "")).state == "absent"
    assert await backend.list_owned() == ()
    assert not (backend.folder / order.name).exists()


async def test_a_cpu_in_the_place_of_a_tpu(scene: Scene, tmp_path: Path) -> None:
    """The code finds the variables that make it so; those of other leases on this host stay as they are."""
    backend = _backend(tmp_path / "machines", **{"env.XLA_FLAGS": "--xla_cpu_x=1", "env.PJRT_DEVICE": "CUDA"})
    scene.plan(scene.run("r1", "env"), setup="", setup_inputs=[])
    order = _order(backend, scene, simulate="tpu", devices="4")
    await backend.create(order)
    await _until_ended(backend, order.name)
    said = set(scene.server.text("r1", "log.txt").splitlines())
    await backend.delete(order.name, "")
    backend.clear()
    assert {
        "JAX_PLATFORMS=cpu",
        "XLA_FLAGS=--xla_cpu_x=1 --xla_force_host_platform_device_count=4",
        "PJRT_DEVICE=CPU",
        "CPU_NUM_DEVICES=4",
    } <= said


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
async def test_jax_sees_that_many_devices(backend: LocalBackend, scene: Scene) -> None:
    scene.plan(scene.run("r1", "python -c 'import jax; print(jax.devices())'"), setup="", setup_inputs=[])
    order = _order(backend, scene, simulate="tpu", devices="8")
    await backend.create(order)
    await _until_ended(backend, order.name)
    assert scene.server.text("r1", "log.txt").count("CpuDevice") == 8
    await backend.delete(order.name, "")


@pytest.mark.parametrize("options", [{"simulate": "gpu"}, {"simulate": "tpu", "devices": "0"}])
async def test_what_cannot_be_simulated(backend: LocalBackend, options: dict[str, str]) -> None:
    with pytest.raises(BackendError, match="`simulate` can be tpu alone"):
        await backend.offers(options)


async def test_deleted_in_the_middle_nothing_goes_on(backend: LocalBackend, scene: Scene) -> None:
    # a daemon that leaves its session and its group behind
    command = (
        'python -c "import os,time; os.fork() or (os.setsid(), os.fork() and os._exit(0), time.sleep(600))"; sleep 600'
    )
    scene.plan(scene.run("r1", command), setup="", setup_inputs=[])
    order = _order(backend, scene)
    await backend.create(order)
    await scene.server.until(lambda: any(event["kind"] == "run_started" for event in scene.server.events))
    await asyncio.sleep(0.5)
    await backend.delete(order.name, "")
    assert (await backend.observe(order.name, "")).state == "absent"
    assert processes.working_in(backend.folder / order.name) == []


@as_root
async def test_code_runs_as_another_user_and_sees_nothing_of_ours(
    backend: LocalBackend, scene: Scene, tmp_path: Path
) -> None:
    secret = tmp_path / "bot" / "key.pem"
    secret.parent.mkdir(mode=0o700)
    secret.write_text("PRIVATE")
    folder = backend.folder / _order(backend, scene).name
    tries = " ".join(f"cat {path} 2>&1 | tail -1;" for path in (secret, folder / "token", folder / "machine.json"))
    scene.plan(scene.run("r1", f"id -u; {tries} env | sort"), setup="", setup_inputs=[])
    order = _order(backend, scene, trusted=False)
    await backend.create(order)
    await _until_ended(backend, order.name)
    said = scene.server.text("r1", "log.txt")
    assert int(said.split()[0]) >= 61200
    assert said.count("Permission denied") == 3
    assert "PRIVATE" not in said
    assert TOKEN not in said
    assert "BENCHBOT_MACHINE" not in said


@as_root
async def test_two_bots_of_one_host_never_share_a_user(backend: LocalBackend, scene: Scene, tmp_path: Path) -> None:
    """A machine keeps its user until it is deleted, although nothing of it runs any more."""
    scene.plan(scene.run("r1", "id -u"), setup="", setup_inputs=[])
    mine = _order(backend, scene)
    await backend.create(mine)
    await _until_ended(backend, mine.name)
    other = _backend(tmp_path / "other")
    theirs = _order(other, scene)
    await other.create(theirs)
    users = [json.loads((each.folder / mine.name / "machine.json").read_text())["uid"] for each in (backend, other)]
    assert users[0] != users[1]
    await _until_ended(other, theirs.name)
    await other.delete(theirs.name, "")
    await backend.delete(mine.name, "")


async def test_not_as_root_strangers_are_refused(tmp_path: Path, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    careful = _backend(tmp_path / "machines", trust_all="false")
    assert "root" in careful.isolates()
    with pytest.raises(BackendError) as refused:
        await careful.create(_order(careful, scene, trusted=False))
    assert refused.value.code == "config"
    assert _backend(tmp_path / "machines").isolates() == ""
