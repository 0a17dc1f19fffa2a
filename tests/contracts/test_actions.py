"""What is particular to runs of GitHub Actions, and the workflow, run here; the rest is in `test_backends`."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from ruamel.yaml import YAML

from bot.sandbox.state import WorkflowRun
from runners.backends.actions import ActionsBackend
from runners.backends.base import BackendError, BackendSettings
from runners.protocol import PREFIX
from runners.spec import MachineOrder, Offer
from templates import read_text
from tests.contracts.clouds import LEASE, NAME
from tests.harness.actions import FULL_NAME, REQUEST_TOKEN, Runners, alone, new_key
from tests.harness.github_contract import RestContract
from tests.harness.world import START, Clock

SERVER = "https://bench.example.org"
GPU = {"label": "gpu"}


@pytest.fixture
async def github(tmp_path: Path, contract: RestContract) -> AsyncIterator[Runners]:
    async with alone(tmp_path, Clock(), contract) as runners:
        yield runners


def order(*, label: str = "gpu", attempt: int = 1, trusted: bool = True, name: str = NAME) -> MachineOrder:
    return MachineOrder(
        name=name,
        deployment="main",
        lease_id=LEASE,
        server_url=SERVER,
        token="token-1",
        deadline_at=START + 3600,
        offer=Offer(backend="actions", zone=label),
        attempt=attempt,
        options=GPU,
        trusted=trusted,
    )


def wait(github: Runners, seconds: float) -> None:
    github.clock.now += seconds  # type: ignore[attr-defined]


async def state(actions: ActionsBackend, label: str = "gpu") -> str:
    return (await actions.observe(NAME, label)).state


async def refusal(actions: ActionsBackend, ordered: MachineOrder | None = None) -> BackendError:
    with pytest.raises(BackendError) as refused:
        await actions.create(ordered or order())
    return refused.value


# ---- machines -------------------------------------------------------------------------------------------------------


async def test_what_a_run_is_made_of(github: Runners, tmp_path: Path) -> None:
    """Its name is the machine's with the attempt; it has the label, and ends itself in time."""
    actions = github.backend(tmp_path)
    assert [offer.zone for offer in await actions.offers({"label": "gpu, big"})] == ["gpu", "big"]
    (offer,) = await actions.offers({"label": "gpu", "device": "cuda", "count": "2"})
    assert (offer.queued, offer.device, offer.devices) == (True, "cuda", 2)
    await actions.create(order())
    (run,) = github.runs
    assert (run.title, run.label, run.ref) == (f"{NAME}/1", "gpu", "main")
    assert run.inputs["minutes"] == "75"
    seen = await actions.observe(NAME, "gpu")
    assert (seen.state, seen.evidence) == ("waiting", "No runner with the label gpu has taken it yet.")


async def test_no_secret_is_told_to_the_workflow(github: Runners, tmp_path: Path) -> None:
    """Inputs are shown to everybody who can read the repository."""
    await github.backend(tmp_path).create(order())
    assert "token-1" not in json.dumps(dict(github.runs[0].inputs))


async def test_nobody_takes_it(github: Runners, tmp_path: Path) -> None:
    """After the operator's patience it is out of stock, and there until cancelled; another attempt is a new run."""
    actions = github.backend(tmp_path, patience_s="1800")
    await actions.create(order())
    wait(github, 1799)
    assert await state(actions) == "waiting"
    wait(github, 2)
    seen = await actions.observe(NAME, "gpu")
    assert (seen.state, seen.code) == ("stopped", "no_capacity")
    assert "No runner with the label gpu has taken it in 30 min" in seen.evidence
    await actions.delete(NAME, "gpu")
    assert await state(actions) == "absent"
    await actions.create(order(attempt=2, label="big"))
    assert [(run.title, run.status) for run in github.runs] == [(f"{NAME}/1", "completed"), (f"{NAME}/2", "queued")]
    assert await state(actions, "big") == "waiting"


async def test_an_order_for_ever_is_capped(github: Runners, tmp_path: Path) -> None:
    """GitHub ends a job after five days in any case."""
    actions = github.backend(tmp_path)
    wait(github, -30 * 86_400)
    await actions.create(order())
    assert github.runs[0].inputs["minutes"] == "7200"


async def test_an_order_that_became_two_runs(github: Runners, tmp_path: Path) -> None:
    """GitHub's list did not show the first one yet: the older run is the machine; the other is ended, cannot claim."""
    actions = github.backend(tmp_path)
    await actions.create(order())
    late = github.runs.pop()
    await actions.create(order())
    github.runs.insert(0, late)
    older, younger = github.runs
    github.take()
    assert "another run" in await actions.doubts(github.identity(younger, SERVER), NAME, SERVER)
    assert await state(actions) == "running"
    assert (older.status, younger.status) == ("in_progress", "completed")
    assert await actions.doubts(github.identity(older, SERVER), NAME, SERVER) == ""


async def test_it_is_found_behind_many_others(github: Runners, tmp_path: Path) -> None:
    """GitHub gives runs in pages."""
    actions = github.backend(tmp_path)
    await actions.create(order())
    (run,) = github.runs
    others = [replace(run, id=run.id + number, title=f"bb-main-other{number}-0/1") for number in range(1, 52)]
    github.runs.extend(others)
    assert await state(actions) == "waiting"
    assert len(await actions.list_owned()) == 52


async def test_a_run_that_does_not_listen(github: Runners, tmp_path: Path) -> None:
    """Asked once, and forced when two minutes have passed."""
    actions = github.backend(tmp_path)
    await actions.create(order())
    github.take()
    github.runs[0].deaf = True
    for _ in range(3):
        await actions.delete(NAME, "gpu")
        assert await state(actions) == "running"
    wait(github, 120)
    await actions.delete(NAME, "gpu")
    assert await state(actions) == "absent"
    ends = [path.rpartition("/")[2] for method, path, _ in github.sandbox.hub.calls if "cancel" in path]
    assert ends == ["cancel", "force-cancel"]


@pytest.mark.parametrize(
    ("conclusion", "code"),
    [("success", "agent_lost"), ("cancelled", "agent_lost"), ("failure", "agent_lost"), ("startup_failure", "config")],
)
async def test_it_ended_by_itself(github: Runners, tmp_path: Path, conclusion: str, code: str) -> None:
    """A completed run holds no runner: absent, with how it ended and what the workflow noted."""
    actions = github.backend(tmp_path)
    await actions.create(order())
    (run,) = github.runs
    run.steps = [("Prepare", "failure")]
    note = {"path": ".github", "start_line": 1, "end_line": 1, "annotation_level": "failure"}
    run.annotations = [{**note, "message": "The agent cannot be fetched."}]
    run.end(conclusion)
    seen = await actions.observe(NAME, "gpu")
    assert (seen.state, seen.code) == ("absent", code)
    assert f"ended with {conclusion}." in seen.evidence
    assert ("The agent cannot be fetched." in seen.evidence) == (conclusion == "failure")
    told = await actions.diagnose(NAME, "gpu")
    assert ("Prepare: failure" in told) == (conclusion != "startup_failure")
    assert f"/actions/runs/{run.id}" in told


async def test_an_ended_order_is_not_made_again(github: Runners, tmp_path: Path) -> None:
    """The same name and attempt is the same machine, whether it lives or not."""
    actions = github.backend(tmp_path)
    await actions.create(order())
    github.runs[0].end("failure")
    await actions.create(order())
    assert len(github.runs) == 1


async def test_nothing_was_ordered(github: Runners, tmp_path: Path) -> None:
    """What is not there is absent, and deleting it is fine."""
    actions = github.backend(tmp_path)
    await actions.delete(NAME, "gpu")
    assert await state(actions) == "absent"
    assert await actions.diagnose(NAME, "gpu") == "no run was found"


async def test_machines_of_other_deployments_are_not_ours(github: Runners, tmp_path: Path) -> None:
    """The name decides."""
    actions = github.backend(tmp_path)
    await actions.create(order(name="bb-mainly-abc-0"))
    await actions.create(order(name="bb-other-abc-0"))
    assert await actions.list_owned() == ()


# ---- what an operator can do wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"repository": ""}, "Set `repository`"),
        ({"repository": "acme"}, "Set `repository`"),
        ({"repository": "acme/none"}, "no workflow benchbot.yml in acme/none"),
        ({"workflow": "none.yml"}, "no workflow none.yml in acme/bench-runners"),
        ({"ref": "none"}, "No ref found for: none"),
    ],
)
async def test_wrong_options(github: Runners, tmp_path: Path, options: dict[str, str], said: str) -> None:
    """Each is told in the operator's words."""
    refused = await refusal(github.backend(tmp_path, **options))
    assert refused.code == "config"
    assert said in refused.sentence


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Set `label`"),
        ({"label": "gpu", "patience_s": "1h"}, "patience_s"),
        ({"label": "gpu", "device": "gpu"}, "device is one of"),
    ],
)
async def test_wrong_options_of_an_offer(github: Runners, tmp_path: Path, options: dict[str, str], said: str) -> None:
    """Found before anything is ordered."""
    with pytest.raises(BackendError, match=said):
        await github.backend(tmp_path, **options).offers({})


async def test_the_app_may_not(github: Runners, tmp_path: Path) -> None:
    """The permission is not among those that the App is registered with."""
    github.app.permissions = {"checks": "write", "actions": "read"}
    assert "Actions: write" in (await refusal(github.backend(tmp_path))).sentence


async def test_the_app_is_not_installed_there(github: Runners, tmp_path: Path) -> None:
    """And works at once when it is, under another number too."""
    actions = github.backend(tmp_path)
    await actions.list_owned()
    github.sandbox.state.installations.clear()
    github.sandbox.state.tokens.clear()
    with pytest.raises(OSError, match="credentials"):
        await actions.list_owned()
    with pytest.raises(BackendError, match="the App installed"):
        await actions.list_owned()
    github.sandbox.install(github.app, "acme")
    await actions.create(order())


async def test_an_older_workflow(github: Runners, tmp_path: Path) -> None:
    """Its inputs are others."""
    old = read_text("machines", "actions.yml").replace("minutes: {", "hours: {").encode()
    await github.sandbox.push(github.repository, "maya", "main", {".github/workflows/benchbot.yml": old})
    assert "this version's?" in (await refusal(github.backend(tmp_path))).sentence


async def test_without_an_app(tmp_path: Path) -> None:
    """A bot on one host alone."""
    settings = BackendSettings(deployment="main", folder=tmp_path, clock=Clock(), options={"repository": FULL_NAME})
    assert "needs a GitHub App" in (await refusal(ActionsBackend(settings))).sentence


async def test_strangers_need_runners_that_are_thrown_away(github: Runners, tmp_path: Path) -> None:
    """Unless the operator says so, their code is refused."""
    refused = await refusal(github.backend(tmp_path), order(trusted=False))
    assert (refused.code, "ephemeral = true" in refused.sentence) == ("untrusted", True)
    actions = github.backend(tmp_path, ephemeral="true")
    assert actions.isolates() == ""
    await actions.create(order(trusted=False))
    assert github.runs[0].inputs["trusted"] == "false"


# ---- identities -----------------------------------------------------------------------------------------------------


async def running(github: Runners, actions: ActionsBackend) -> WorkflowRun:
    await actions.create(order())
    github.take()
    return github.runs[0]


async def test_the_run_proves_itself(github: Runners, tmp_path: Path) -> None:
    """The keys are fetched once, and again when GitHub signs with a new one."""
    actions = github.backend(tmp_path)
    run = await running(github, actions)
    for _ in range(3):
        assert await actions.doubts(github.identity(run, SERVER), NAME, SERVER) == ""
    assert github.fetched == 1
    github.roll()
    fresh = github.backend(tmp_path)
    assert await fresh.doubts(github.identity(run, SERVER), NAME, SERVER) == ""
    github.roll()
    fresh._keys.cooldown_duration = 0
    assert await fresh.doubts(github.identity(run, SERVER), NAME, SERVER) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"aud": "https://other.example.org"}, "not for us"),
        ({"iss": "https://token.example.org"}, "not GitHub's"),
        ({"exp": 1_600_000_000}, "not for us now"),
        ({"exp": None}, "not GitHub's"),
        ({"repository": "evil/bench-runners"}, "another repository"),
        ({"workflow_ref": f"{FULL_NAME}/.github/workflows/other.yml@refs/heads/main"}, "another workflow"),
        ({"workflow_ref": f"{FULL_NAME}/.github/workflows/benchbot.yml@refs/heads/mine"}, "another branch"),
        ({"workflow_ref": f"{FULL_NAME}/.github/workflows/benchbot.yml@refs/pull/1/merge"}, "another branch"),
        ({"run_id": "1"}, "another run"),
        ({"run_id": None}, "another run"),
    ],
)
async def test_what_does_not_prove_it(github: Runners, tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    """Signed by GitHub, and still not this machine now."""
    actions = github.backend(tmp_path)
    claims = {**github.claims(await running(github, actions), SERVER), **changed}
    identity = github.signed({name: value for name, value in claims.items() if value is not None})
    assert said in await actions.doubts(identity, NAME, SERVER)


async def test_forged(github: Runners, tmp_path: Path) -> None:
    """Another key under GitHub's name for it, no signature, no identity at all; GitHub's list is not even asked."""
    actions = github.backend(tmp_path)
    run = await running(github, actions)
    true_key = github.key
    github.key = new_key(9)
    forged = github.identity(run, SERVER)
    github.key = true_key
    unsigned = forged.rpartition(".")[0] + "."
    calls = len(github.sandbox.hub.calls)
    for identity in (forged, unsigned, "a.b.c", "token-1"):
        assert "it is not GitHub's" in await actions.doubts(identity, NAME, SERVER)
    assert len(github.sandbox.hub.calls) == calls


async def test_a_run_that_has_ended_proves_nothing(github: Runners, tmp_path: Path) -> None:
    """Its identity may live on for minutes."""
    actions = github.backend(tmp_path)
    run = await running(github, actions)
    run.end("cancelled")
    assert "another run" in await actions.doubts(github.identity(run, SERVER), NAME, SERVER)


async def test_the_keys_cannot_be_fetched(github: Runners, tmp_path: Path) -> None:
    """That is no doubt: the agent asks again."""
    actions = github.backend(tmp_path)
    run = await running(github, actions)
    github.away = True
    with pytest.raises(OSError, match="keys"):
        await actions.doubts(github.identity(run, SERVER), NAME, SERVER)


# ---- the workflow, step by step -------------------------------------------------------------------------------------

# stands where the agent would be: says how it was started, and as whom
AGENT = """
import json, os, sys
at = sys.argv.index("--identity-file") + 1
told = {"words": sys.argv[1:], "environment": dict(os.environ), "identity": open(sys.argv[at]).read().strip()}
told["mode"] = os.stat(sys.argv[at]).st_mode & 0o777
print("::error::not a command")
json.dump(told, open(os.path.dirname(sys.argv[at]) + "/../told.json", "w"))
"""


async def test_the_workflow(github: Runners, tmp_path: Path) -> None:
    """Its steps, run here as a runner runs them: the agent gets the run's identity, and nothing of the job's own."""
    actions = github.backend(tmp_path)
    run = await running(github, actions)
    bot = web.Application()
    bot.router.add_get(f"{PREFIX}/agent.pyz", _agent)
    async with TestServer(bot) as server:
        address = str(server.make_url("")).rstrip("/")
        job = _Job(tmp_path, {**run.inputs, "server": address, "trusted": "true"}, github, run)
        outputs = await job.run("Prepare")
        assert (outputs.returncode, job.outputs["folder"].startswith(str(tmp_path))) == (0, True), outputs
        assert bool(job.outputs["uid"]) == (os.geteuid() == 0)
        assert (await job.run("Run the lease")).returncode == 0
        said = await job.run("Clear away")
        assert job.left() == []
    assert "| ::error::not a command" in said.stdout
    told = json.loads((tmp_path / "told.json").read_text())
    assert set(told["environment"]) <= {"PATH", "LANG", "LC_CTYPE", "PWD", "SHLVL", "_"}
    assert REQUEST_TOKEN not in json.dumps(told)
    assert told["mode"] == 0o600
    assert await actions.doubts(told["identity"], NAME, address) == ""
    words = dict(zip(told["words"], told["words"][1:], strict=False))
    assert (words["--server"], words["--lease"]) == (address, run.inputs["lease"])
    assert "--trusted" in told["words"]
    assert ("--uid" in told["words"]) == (os.geteuid() == 0)


async def test_the_workflow_says_what_is_missing(github: Runners, tmp_path: Path) -> None:
    """The sentence is an annotation, which the backend reads."""
    run = await running(github, github.backend(tmp_path))
    job = _Job(tmp_path, {**run.inputs, "server": "http://127.0.0.1:1"}, github, run)
    said = await job.run("Prepare")
    assert said.returncode == 1
    assert "::error title=benchbot::The agent cannot be fetched from http://127.0.0.1:1" in said.stdout
    await job.run("Clear away")
    assert job.left() == []


async def test_a_metadata_server_within_reach(github: Runners, tmp_path: Path) -> None:
    """Whatever answers there may give out the host's own credentials."""
    run = await running(github, github.backend(tmp_path))
    async with TestServer(web.Application()) as server:
        job = _Job(tmp_path, dict(run.inputs), github, run)
        job.metadata = ("127.0.0.1", int(server.port or 0))
        said = await job.run("Prepare")
    assert said.returncode == 1
    assert "The metadata server of this host answers" in said.stdout
    await job.run("Clear away")


@pytest.mark.skipif(os.geteuid() != 0, reason="root gives the code a user of its own")
async def test_each_job_of_a_host_has_its_own_user(github: Runners, tmp_path: Path) -> None:
    """Two runners on one host: neither may end the other's processes."""
    run = await running(github, github.backend(tmp_path))
    users = set()
    jobs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        job = _Job(tmp_path / name, {**run.inputs, "server": "http://127.0.0.1:1"}, github, run)
        await job.run("Prepare")
        jobs.append(job)
        users.add(job.outputs["uid"])
    for job in jobs:
        await job.run("Clear away")
    assert len(users) == 2
    assert [job.left() for job in jobs] == [[], []]


async def _agent(_: web.Request) -> web.Response:
    return web.Response(text=AGENT)


class _Job:
    """A runner, as far as these steps need one."""

    def __init__(self, folder: Path, inputs: dict[str, str], github: Runners, run: WorkflowRun) -> None:
        (job,) = YAML(typ="safe").load(read_text("machines", "actions.yml"))["jobs"].values()
        self.steps = {step["name"]: step for step in job["steps"]}
        self.folder, self.inputs = folder, inputs
        self.outputs: dict[str, str] = {}
        (folder / "output").touch()
        self.metadata = ("127.0.0.1", 1)
        # curl's tries are many on a runner; here each step is to end at once, and to change nothing of this host
        (folder / "bin").mkdir()
        for name in ("sudo", "iptables"):
            (folder / "bin" / name).write_text("#!/bin/bash\nexit 1\n")
            (folder / "bin" / name).chmod(0o755)
        (folder / "bin" / "curl").write_text(
            '#!/bin/bash\nexec /usr/bin/env -S PATH="$REAL_PATH" curl "$@" --retry 0\n'
        )
        (folder / "bin" / "curl").chmod(0o755)
        self.environment = {
            "REAL_PATH": os.environ["PATH"],
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(folder / "output"),
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{github.url}/idtoken/{run.id}?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
            **{name: self._filled(value) for name, value in job["env"].items()},
        }

    def _filled(self, text: str) -> str:
        for kind, known in (("inputs", self.inputs), ("steps.place.outputs", self.outputs)):
            for name, value in known.items():
                text = text.replace(f"${{{{ {kind}.{name} }}}}", value)
        return text

    def left(self) -> list[Path]:
        """What the job made on its host and did not clear away."""
        made = (Path(self.outputs["folder"]), Path(f"/run/benchbot-{self.outputs['uid']}"))
        return [path for path in made if path.exists()]

    async def run(self, name: str) -> Any:
        """One step; returns its status and what it printed."""
        step = self.steps[name]
        environment = self.environment | {key: self._filled(value) for key, value in step.get("env", {}).items()}
        script = step["run"].replace("/var/tmp/", f"{self.folder}/")
        if name == "Prepare":
            assert '("169.254.169.254", 80)' in script
            host, port = self.metadata
            script = script.replace('("169.254.169.254", 80)', f'("{host}", {port})')
        assert "${{" not in script, "inputs reach the shell as variables only"
        process = await asyncio.create_subprocess_exec(
            *("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        stdout, _ = await process.communicate()
        lines = (self.folder / "output").read_text().splitlines()
        self.outputs = dict(line.split("=", 1) for line in lines)
        return _Said(process.returncode or 0, stdout.decode())


class _Said:
    def __init__(self, returncode: int, stdout: str) -> None:
        self.returncode, self.stdout = returncode, stdout

    def __repr__(self) -> str:
        return f"{self.returncode}: {self.stdout}"
