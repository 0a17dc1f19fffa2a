"""Self-hosted runners before the local GitHub: they take runs whose label they have, and GitHub gives each an identity.

The REST calls are the sandbox's, judged by GitHub's description. How long things take, and what stands in an identity,
is our reading of GitHub's documentation.
"""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jwt
from aiohttp import ClientSession, web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from bot.github.auth import AppKey
from bot.github.caller import Caller
from bot.github.client import GitHub
from bot.sandbox.hub import Fault
from bot.sandbox.registering import Registration
from bot.sandbox.shapes import API
from bot.sandbox.state import App, Repository, WorkflowRun
from bot.sandbox.world import Sandbox
from runners.backends.actions import ActionsBackend
from runners.backends.base import BackendSettings
from runners.spec import MachineOrder, Offer
from templates import read_text
from tests.harness.github_contract import RestContract, middleware

FULL_NAME = "acme/bench-runners"
FILE = "benchbot.yml"
REQUEST_TOKEN = "request-token-of-the-job"
_LIVES_S = 300


class Runners:
    """A repository with our workflow, its runners by label, and the issuer of identities."""

    def __init__(self, sandbox: Sandbox, app: App, session: ClientSession, clock: Callable[[], float]) -> None:
        self.sandbox, self.app, self.session, self.clock = sandbox, app, session, clock
        self.online = {"gpu"}
        self.options: dict[str, str] = {}
        self.key, self.kid = new_key(1), "key-1"
        self.fetched = 0
        self.away = False
        self._web: web.AppRunner | None = None
        self.url = ""
        self.repository: Repository

    async def start(self) -> None:
        """Put the workflow into the repository, and give identities on a port of loopback."""
        folder = self.sandbox.state.folder / "bench-runners.git"
        await asyncio.to_thread(_fill, folder)
        self.repository = self.sandbox.add_repository(FULL_NAME, folder, private=True)
        self.app.permissions = {**self.app.permissions, "actions": "write"}
        server = web.Application()
        server.router.add_get("/.well-known/jwks", self._jwks)
        server.router.add_get("/idtoken/{run}", self._give)
        self._web = web.AppRunner(server, shutdown_timeout=0.1)
        await self._web.setup()
        await web.TCPSite(self._web, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._web.addresses[0][1]}"

    async def stop(self) -> None:
        """Give no more."""
        if self._web:
            await self._web.cleanup()

    # ---- for stories ------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> list[WorkflowRun]:
        """All runs, oldest first."""
        return self.repository.runs

    @property
    def living(self) -> list[WorkflowRun]:
        """Runs that have not ended."""
        return [run for run in self.runs if run.status != "completed"]

    def backend(self, folder: Path, **options: str) -> ActionsBackend:
        """Our backend as the App of this GitHub."""
        key = AppKey(self.app.id, self.app.private_key, self.sandbox.api_url)
        chosen = {"repository": FULL_NAME, "issuer": self.url, **self.options, **options}
        settings = BackendSettings(
            deployment="main",
            folder=folder,
            clock=self.clock,
            options={name: value for name, value in chosen.items() if value},
            github=Caller(GitHub(self.session, key)),
        )
        return ActionsBackend(settings)

    def take(self) -> None:
        """Idle runners take what has their label."""
        for run in self.living:
            if run.status == "queued" and run.label in self.online:
                run.status, run.runner = "in_progress", f"runner-{run.label}"

    def orders(self, server_url: str) -> dict[str, MachineOrder]:
        """What the agent of each running run knows: its inputs, and the identity that the run has got."""
        self.take()
        found = {}
        for run in self.living:
            if run.status != "in_progress":
                continue
            assert run.inputs["server"] == server_url
            name = run.inputs["machine"].partition("/")[0]
            found[name] = MachineOrder(
                name=name,
                deployment="main",
                lease_id=run.inputs["lease"],
                server_url=server_url,
                token=self.identity(run, server_url),
                deadline_at=float(run.inputs["deadline"]),
                offer=Offer(backend="actions", zone=run.label),
            )
        return found

    def fail(self, method: str, path: str, status: int, **more: Any) -> None:
        """The next call of this kind goes wrong."""
        self.sandbox.hub.faults.append(Fault(method=method, path=path, status=status, **more))

    # ---- identities -------------------------------------------------------------------------------------------------

    def claims(self, run: WorkflowRun, audience: str) -> dict[str, Any]:
        """What GitHub says of a run."""
        now = int(time.time())
        place = f"{FULL_NAME}/.github/workflows/{run.workflow}@refs/heads/{run.ref}"
        return {
            "iss": self.url,
            "aud": audience,
            "sub": f"repo:{FULL_NAME}:ref:refs/heads/{run.ref}",
            "iat": now,
            "nbf": now - 300,
            "exp": now + _LIVES_S,
            "repository": FULL_NAME,
            "ref": f"refs/heads/{run.ref}",
            "event_name": "workflow_dispatch",
            "workflow_ref": place,
            "job_workflow_ref": place,
            "run_id": str(run.id),
            "run_attempt": "1",
            "runner_environment": "self-hosted",
        }

    def signed(self, claims: dict[str, Any]) -> str:
        """Claims with GitHub's signature."""
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": self.kid})

    def identity(self, run: WorkflowRun, audience: str) -> str:
        """What the run gets when it asks."""
        return self.signed(self.claims(run, audience))

    def roll(self) -> None:
        """GitHub signs with a new key from now on."""
        self.key, self.kid = new_key(2 + len(self.kid)), f"{self.kid}0"

    async def _jwks(self, _: web.Request) -> web.Response:
        self.fetched += 1
        if self.away:
            return web.Response(status=503)
        key = json.loads(RSAAlgorithm.to_jwk(self.key.public_key()))
        return web.json_response({"keys": [{**key, "kid": self.kid, "use": "sig", "alg": "RS256"}]})

    async def _give(self, request: web.Request) -> web.Response:
        """As a job asks for it, at the address and with the token that it finds in its environment."""
        if request.headers.get("Authorization") != f"bearer {REQUEST_TOKEN}":
            return web.Response(status=401)
        assert request.query["api-version"] == "2.0"
        (run,) = [run for run in self.runs if str(run.id) == request.match_info["run"]]
        return web.json_response({"count": 1, "value": self.identity(run, request.query["audience"])})


@cache
def new_key(number: int) -> rsa.RSAPrivateKey:
    """A key for each number; making one takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _fill(folder: Path) -> None:
    """A repository with our workflow on its main branch."""
    workflow = read_text("machines", "actions.yml")
    place = f".github/workflows/{FILE}"
    head = "commit refs/heads/main\ncommitter maya <maya@localhost> 1789990000 +0000\ndata 5\nBegin\n"
    stream = f"{head}M 100644 inline {place}\ndata {len(workflow.encode())}\n{workflow}\n"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True)
    words = ["git", "--git-dir", str(folder), "fast-import", "--quiet"]
    subprocess.run(words, input=stream.encode(), check=True)


@asynccontextmanager
async def alone(folder: Path, clock: Callable[[], float], contract: RestContract) -> AsyncIterator[Runners]:
    """Runners before a GitHub of their own, whose calls are judged; nothing may have been wrong at the end."""
    violations: list[str] = []
    sandbox = Sandbox(folder / "github", clock)
    sandbox.hooks.held = True
    await sandbox.start(middlewares=[middleware(contract, API, violations)])
    key = new_key(0).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    told = Registration(name="benchbot", permissions={"checks": "write"}, events=(), private_key=key.decode())
    app = sandbox.add_app("acme", told)
    sandbox.install(app, "acme")
    async with ClientSession() as session:
        runners = Runners(sandbox, app, session, clock)
        await runners.start()
        try:
            yield runners
        finally:
            await runners.stop()
            await sandbox.stop()
    assert violations == [], "\n".join(violations)
