"""Load on the webhook: bounded in requests and time, on loopback only."""

import asyncio
import hashlib
import hmac
import json
import sys
import time
from dataclasses import dataclass

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


def bare_app() -> web.Application:
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
    return app


@dataclass(frozen=True, slots=True)
class Load:
    """What a load saw: requests per second, and latencies in seconds, sorted."""

    per_second: float
    latencies: tuple[float, ...]

    def percentile(self, share: float) -> float:
        """Latency below which a share of the requests stayed."""
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


class Line:
    """One connection that is kept. Bytes are written and read by hand: the load must cost less than what it loads."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, number: int, raw: bytes) -> float:
        """Send a delivery; seconds until its answer was read."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        begun = time.perf_counter()
        writer.write(raw)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        assert head.startswith(b"HTTP/1.1 202"), f"delivery {number}: {head[:60]!r}"
        return time.perf_counter() - begun

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()


def as_bytes(number: int) -> bytes:
    """A delivery as it goes over the wire."""
    headers, body = delivery(number)
    lines = ["POST /webhook HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def flood(port: int, first: int, count: int, at_once: int = 16) -> Load:
    """As many as go through with `at_once` connections."""
    made = [as_bytes(first + number) for number in range(count)]
    latencies: list[float] = []

    async def one(worker: int) -> None:
        line = Line(port)
        for at in range(worker, count, at_once):
            latencies.append(await line.send(first + at, made[at]))
        line.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one(worker) for worker in range(at_once)))
    return Load(count / (time.perf_counter() - begun), tuple(sorted(latencies)))


async def steady(port: int, first: int, per_second: int, seconds: int) -> Load:
    """A fixed rate, whatever the answers take: each is sent when its time has come, on a line that is free."""
    count = per_second * seconds
    made = [as_bytes(first + number) for number in range(count)]
    free = [Line(port) for _ in range(64)]
    latencies: list[float] = []
    begun = time.perf_counter() + 0.2

    async def one(at: int) -> None:
        await asyncio.sleep(max(0.0, begun + at / per_second - time.perf_counter()))
        line = free.pop() if free else Line(port)
        latencies.append(await line.send(first + at, made[at]))
        free.append(line)

    await asyncio.gather(*(one(at) for at in range(count)))
    for line in free:
        line.close()
    return Load(float(per_second), tuple(sorted(latencies)))


if __name__ == "__main__":
    web.run_app(bare_app(), host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
