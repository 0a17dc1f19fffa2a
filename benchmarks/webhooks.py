"""Load on the webhook: bounded in requests and time, on loopback only."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from gidgethub import routing, sansio

SECRET = "bench-secret"
# 14.7 KB, the size of a real issue_comment delivery
PADDING = "x" * 12_500


def delivery(number: int) -> tuple[dict[str, str], bytes]:
    """A signed issue_comment delivery, different in its id, its comment and its time."""
    payload = {
        "action": "created",
        "comment": {
            "id": number,
            "body": "/benchmark resnet50",
            "updated_at": f"t{number}",
            "user": {"id": 1, "login": "maya", "type": "User"},
        },
        "issue": {"number": 1, "pull_request": {"url": "u"}, "body": PADDING},
        "repository": {"id": 7, "full_name": "acme/models", "private": False, "default_branch": "main"},
        "installation": {"id": 3},
        "sender": {"id": 1, "login": "maya", "type": "User"},
    }
    body = json.dumps(payload).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issue_comment",
        "X-GitHub-Delivery": f"guid-{number}",
        "X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
    }
    return headers, body


@asynccontextmanager
async def bare_app() -> AsyncIterator[str]:
    """The peer: aiohttp and gidgethub, signature and routing, nothing stored."""
    router = routing.Router()

    @router.register("issue_comment", action="created")
    async def created(event: sansio.Event) -> None:
        assert event.data["comment"]["body"]

    async def handle(request: web.Request) -> web.Response:
        event = sansio.Event.from_http(request.headers, await request.read(), secret=SECRET)
        await router.dispatch(event)
        return web.Response(status=202)

    app = web.Application()
    app.router.add_post("/webhook", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        yield f"http://127.0.0.1:{port}/webhook"
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Load:
    """What a load saw: requests per second, and latencies in seconds, sorted."""

    per_second: float
    latencies: tuple[float, ...]

    def percentile(self, share: float) -> float:
        """Latency below which a share of the requests stayed."""
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


async def flood(url: str, first: int, count: int, at_once: int = 16) -> Load:
    """As many as go through with `at_once` connections."""
    made = [delivery(first + number) for number in range(count)]
    latencies: list[float] = []

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=at_once)) as session:

        async def one(worker: int) -> None:
            for headers, body in made[worker::at_once]:
                begun = time.perf_counter()
                async with session.post(url, data=body, headers=headers) as answer:
                    assert answer.status == 202, await answer.text()
                latencies.append(time.perf_counter() - begun)

        begun = time.perf_counter()
        await asyncio.gather(*(one(worker) for worker in range(at_once)))
        seconds = time.perf_counter() - begun
    return Load(count / seconds, tuple(sorted(latencies)))


async def steady(url: str, first: int, per_second: int, seconds: int) -> Load:
    """A fixed rate, whatever the answers take."""
    made = [delivery(first + number) for number in range(per_second * seconds)]
    latencies: list[float] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(at: float, headers: dict[str, str], body: bytes) -> None:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            begun = time.perf_counter()
            async with session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 202, await answer.text()
            latencies.append(time.perf_counter() - begun)

        begun = time.perf_counter() + 0.2
        tasks = [one(begun + i / per_second, *parts) for i, parts in enumerate(made)]
        await asyncio.gather(*tasks)
    return Load(float(per_second), tuple(sorted(latencies)))
