"""A GitHub that knows nothing but its own description, and the local GitHub judged by it."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.github.auth import AppKey
from bot.github.client import GitHub, Where
from bot.sandbox.shapes import API
from bot.sandbox.world import Sandbox
from tests.contracts.vendor_answers import vendor_answer
from tests.harness.github_contract import RestContract, WebhookContract, middleware
from tests.harness.land import Land

REPOSITORY = "/repositories/7"
WHERE = Where(repository_id=7, installation_id=5)
SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
CHECK = {
    "name": "benchbot / all",
    "head_sha": SHA,
    "external_id": "r1",
    "status": "completed",
    "conclusion": "success",
    "output": {"title": "Done", "summary": "All good.", "text": "Nothing more."},
    "actions": [{"label": "Retry", "description": "Measure again.", "identifier": "retry"}],
}


@dataclass
class Vendor:
    """Answers calls with what was put for them; everything else is answered 404, as GitHub does."""

    contract: RestContract
    github: GitHub = field(init=False)
    api_url: str = ""
    answers: dict[tuple[str, str], list[web.Response]] = field(default_factory=dict)
    calls: list[web.Request] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def put(
        self, method: str, path: str, body: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> "Vendor":
        """One answer; several for the same call are given one after the other, the last one for ever."""
        text = None if body is None else json.dumps(body)
        answer = web.Response(status=status, text=text, content_type="application/json", headers=headers)
        self.answers.setdefault((method, path), []).append(answer)
        return self

    def show(self, method: str, path: str, status: int = 200, example: str = "", **changes: Any) -> Any:
        """Put GitHub's example of an answer, with fields changed; returns it."""
        body = vendor_answer(self.contract, method, path, status, example)
        if isinstance(body, dict):
            body |= changes
        self.put(method, path, body, status)
        return body

    async def answer(self, request: web.Request) -> web.Response:
        """The handler of the server."""
        self.calls.append(request)
        waiting = self.answers.get((request.method, request.path), [])
        found = waiting.pop(0) if len(waiting) > 1 else (waiting or [_error("Not Found", 404)])[0]
        return web.Response(status=found.status, body=found.body, headers=found.headers)

    def forgive(self, said: str) -> None:
        """Take back the one violation that was ours, on purpose."""
        assert len(self.violations) == 1
        assert said in self.violations.pop()

    def last(self) -> tuple[str, str, dict[str, str]]:
        """Method, path and query of the last call."""
        call = self.calls[-1]
        return call.method, call.path, dict(call.query)


def _error(message: str, status: int) -> web.Response:
    body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return web.json_response(body, status=status)


@pytest.fixture(scope="session")
def contract() -> RestContract:
    return RestContract()


@pytest.fixture(scope="session")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*plain).decode()


@pytest.fixture
async def vendor(contract: RestContract, private_key: str) -> AsyncIterator[Vendor]:
    """A server that knows the token of our installation and nothing else yet."""
    made = Vendor(contract)
    app = web.Application(middlewares=[middleware(contract, "", made.violations)])
    app.router.add_route("*", "/{rest:.*}", made.answer)
    async with TestServer(app) as server, ClientSession() as session:
        made.api_url = str(server.make_url("")).rstrip("/")
        made.github = GitHub(session, AppKey(12, private_key, made.api_url))
        made.show("POST", "/app/installations/5/access_tokens", 201, token="ghs_ours")
        yield made
    assert made.violations == [], "\n".join(made.violations)


@dataclass
class Place:
    """A sandbox whose calls are judged; `violations` must be empty at the end."""

    sandbox: Sandbox
    land: Land
    violations: list[str]

    @property
    def where(self) -> Where:
        (installation,) = self.sandbox.state.installations.values()
        return Where(repository_id=self.land.repository.id, installation_id=installation.id)

    def github(self, session: ClientSession) -> GitHub:
        """Our own client, as the App."""
        app = self.land.app
        return GitHub(session, AppKey(app.id, app.private_key, self.sandbox.api_url))

    def told(self, event: str) -> list[Any]:
        """What the App was told of an event, oldest first."""
        return [each.payload for each in self.sandbox.hooks.waiting if each.event == event]


@pytest.fixture
async def place(tmp_path: Path, contract: RestContract) -> AsyncIterator[Place]:
    """The land in a sandbox; calls, answers and webhooks are judged at the end."""
    violations: list[str] = []
    sandbox = Sandbox(tmp_path / "github", time.time)
    sandbox.hooks.held = True
    await sandbox.start(middlewares=[middleware(contract, API, violations)])
    try:
        yield Place(sandbox, await Land.settle(sandbox, tmp_path, "http://127.0.0.1:9/webhook"), violations)
        assert violations == [], "\n".join(violations)
        hooks = WebhookContract()
        for delivery in sandbox.hooks.waiting:
            assert hooks.check(delivery.event, delivery.payload) == []
    finally:
        await sandbox.stop()
