"""The start-up script of Google's machines, run for real, with a metadata server and an agent on loopback."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from runners.bundle import build_agent
from runners.protocol import PREFIX
from templates import load
from tests.harness.agent_server import TOKEN
from tests.unit.runners.conftest import Scene

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="on a fresh machine the script is root")

UID = 61999
SHIMS = {
    "shutdown": "touch {folder}/off",
    "useradd": "exit 0",
    "iptables": "echo $@ >>{folder}/closed",
    "nvidia-smi": "echo 'GPU 0: NVIDIA L4 (UUID: GPU-1)'",
    # waiting for the driver, not for the deadline
    "sleep": '[ "$1" = 5 ] || exec /bin/sleep "$@"',
}


class Google:
    """A metadata server, and a machine whose programs are ours."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.stages: list[str] = []
        self.attributes: dict[str, str] = {}
        self.url = ""
        self.shims = dict(SHIMS)
        self._groups: list[int] = []

    async def boot(self, **words: object) -> str:
        """Run the script to its end; what the console shows."""
        programs = self.scene.folder / "programs"
        programs.mkdir(exist_ok=True)
        for name, line in self.shims.items():
            (programs / name).write_text(f"#!/bin/bash\n{line.format(folder=self.scene.folder)}\n")
            (programs / name).chmod(0o755)
        values = {"server_url": self.scene.server.url, "agent_path": f"{PREFIX}/agent.pyz", "lease_id": "L1"}
        numbers = {"deadline_at": int(time.time()) + 300, "grace_s": 900, "gpus": 1, "tpus": 0, "uid": UID, "member": 0}
        rendered = load("machines", "startup.sh").render(
            **{**values, **numbers, "slice": False, "environment": "", "trusted": False, **words}
        )
        script = rendered.replace("http://169.254.169.254", self.url)
        script = script.replace("/var/lib/benchbot", str(self.scene.folder / "machine"))
        console = self.scene.folder / "console"
        with console.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                "/bin/bash",
                "-c",
                script,
                env={"PATH": f"{programs}:{os.environ['PATH']}"},
                stdout=out,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        self._groups.append(process.pid)
        await asyncio.wait_for(process.wait(), 60)
        return console.read_text()

    def off(self) -> None:
        """The machine is gone, with what waits for its deadline."""
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@pytest.fixture
async def google(scene: Scene) -> AsyncIterator[Google]:
    made = Google(scene)
    attributes = "/computeMetadata/v1/instance"

    async def token(request: web.Request) -> web.Response:
        assert request.headers["Metadata-Flavor"] == "Google"
        return web.Response(text=TOKEN)

    async def stage(request: web.Request) -> web.Response:
        made.stages.append(await request.text())
        return web.Response()

    async def attribute(request: web.Request) -> web.Response:
        found = made.attributes.get(request.match_info["name"])
        return web.Response(text=found) if found is not None else web.Response(status=404)

    app = web.Application()
    app.router.add_get(f"{attributes}/attributes/benchbot-token", token)
    app.router.add_get(f"{attributes}/attributes/{{name}}", attribute)
    app.router.add_put(f"{attributes}/guest-attributes/benchbot/stage", stage)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    scene.server.bundle = build_agent()
    # others must be able to get to the checkout
    for folder in (scene.folder, *scene.folder.parents):
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    yield made
    made.off()
    await runner.cleanup()


async def test_from_the_first_line_to_the_results(google: Google, scene: Scene) -> None:
    """The agent comes from the bot, the code runs as a user of its own that cannot ask for metadata, then it is off."""
    scene.plan(scene.run("r1", "id -u"), setup="", setup_inputs=[])
    console = await google.boot()
    assert google.stages == ["booted", "agent started", "agent ended with status 0"], console
    assert scene.server.text("r1", "log.txt") == f"{UID}\n", scene.server.ended()
    assert scene.server.finished == {"outcome": "done", "sentence": ""}
    assert f"-d 169.254.169.254 -p tcp --dport 80 -m owner --uid-owner {UID}" in (scene.folder / "closed").read_text()
    assert (scene.folder / "off").exists()
    assert TOKEN not in console


@pytest.mark.parametrize(
    ("shim", "said"),
    [
        ({"nvidia-smi": "echo 'No devices were found'; exit 6"}, "1 GPUs were ordered, 0 are usable"),
        ({"iptables": "exit 1"}, "cannot be kept from the repository's code"),
        ({"curl": 'case "$*" in *agent.pyz*) exit 7;; esac; exec /usr/bin/curl "$@"'}, "the agent cannot be fetched"),
    ],
)
async def test_what_is_missing_is_told_and_nothing_runs(
    google: Google, scene: Scene, shim: dict[str, str], said: str
) -> None:
    google.shims |= shim
    scene.plan(scene.run("r1", "id -u"), setup="", setup_inputs=[])
    await google.boot()
    assert google.stages[-1].startswith("failed: ")
    assert said in google.stages[-1]
    assert scene.server.nonces == []
    assert (scene.folder / "off").exists()


async def test_an_agent_that_hangs_does_not_outlive_the_deadline(google: Google, scene: Scene) -> None:
    """Nobody has to ask for it: the machine powers itself off."""
    scene.server.bundle = b"import time; time.sleep(600)"
    booting = asyncio.create_task(google.boot(deadline_at=int(time.time()) + 2, grace_s=1))
    for _ in range(300):
        if (scene.folder / "off").exists():
            break
        await asyncio.sleep(0.1)
    assert (scene.folder / "off").exists()
    assert google.stages == ["booted", "agent started"]
    google.off()
    await booting


async def test_a_machine_that_is_started_again_does_nothing(google: Google, scene: Scene) -> None:
    scene.plan(scene.run("r1", "id -u"), setup="", setup_inputs=[])
    (scene.folder / "machine").mkdir(mode=0o755)
    (scene.folder / "machine" / "agent.log").write_text("the first time")
    await google.boot()
    assert google.stages[-1] == "failed: the machine was started again"
    assert scene.server.nonces == []


SLICE = {
    "agent-worker-number": "1",
    "worker-network-endpoints": "unknown:unknown:10.0.0.5,unknown:unknown:10.0.0.6",
    "tpu-env": "ACCELERATOR_TYPE: 'v4-16'\nCHIPS_PER_HOST_BOUNDS: '2,2,1'\nHOST_BOUNDS: '1,1,2'\nWORKER_ID: '1'\n",
}


async def test_a_host_of_a_slice_knows_its_number_and_the_others(google: Google, scene: Scene) -> None:
    """The same script on each host: what differs comes from the metadata server, and the code finds it in variables."""
    google.attributes = SLICE
    scene.plan(scene.run("r1", "env"), setup="", setup_inputs=[])
    await google.boot(slice=True, gpus=0, environment='{"PJRT_DEVICE": "TPU"}')
    assert google.stages == ["booted", "agent started", "agent ended with status 0"]
    assert [event["member"] for event in scene.server.events] == [1] * len(scene.server.events)
    told = scene.server.text("r1", "host-1/log.txt").splitlines()
    assert {line for line in told if line.startswith(("TPU_", "PJRT_"))} == {
        "TPU_WORKER_ID=1",
        "TPU_WORKER_HOSTNAMES=10.0.0.5,10.0.0.6",
        "TPU_HOST_BOUNDS=1,1,2",
        "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1",
        "PJRT_DEVICE=TPU",
    }


@pytest.mark.parametrize("missing", sorted(SLICE))
async def test_a_host_that_cannot_know_does_nothing(google: Google, scene: Scene, missing: str) -> None:
    google.attributes = {name: text for name, text in SLICE.items() if name != missing}
    scene.plan(scene.run("r1", "env"), setup="", setup_inputs=[])
    await google.boot(slice=True, gpus=0, environment="{}")
    assert google.stages[-1].startswith("failed: the metadata server")
    assert scene.server.nonces == []
