"""A bot's half of the agent protocol, in memory, for tests of the agent: it remembers what it was told, and misbehaves
when asked to."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from runners import protocol

TOKEN = "token-of-the-lease-0123456789"
CREDENTIAL = "credential-of-the-lease-0123456789"


@dataclass
class Faults:
    """What goes wrong: `lost_claims` answers that never arrive, `busy` statuses 503 by kind of call, a `stop` that
    the next heartbeat carries, and offsets that were lost (`forget` halves the file once)."""

    lost_claims: int = 0
    busy: Counter[str] = field(default_factory=Counter)
    stop: str = ""
    forget: set[str] = field(default_factory=set)
    gone: bool = False


class AgentServer:
    """Serves one lease's `work` on a port of 127.0.0.1."""

    def __init__(self, work: Mapping[str, Any], *, deadline_at: float, heartbeat_s: float = 0.2) -> None:
        self.work = work
        self.deadline_at = deadline_at
        self.heartbeat_s = heartbeat_s
        self.faults = Faults()
        # what the lease is claimed with: "token" or "identity"
        self.proof = "token"
        self.nonces: list[str] = []
        self.ready: dict[int, str] = {}
        self.port = 0
        self.met: dict[str, str] = {}
        # what is answered to the question whether a run is wanted, one after the other
        self.wanted: dict[str, list[dict[str, bool]]] = {}
        self.bundle = b""
        self.events: list[dict[str, Any]] = []
        self.heartbeats: list[dict[str, Any]] = []
        self.files: dict[tuple[str, str], bytearray] = {}
        self.manifests: dict[str, dict[str, str]] = {}
        self.finished: dict[str, Any] | None = None
        self.repositories: dict[str, Path] = {}
        self.fetch_headers: list[str] = []
        self.told = asyncio.Condition()
        # where a checkpoint of a manifest is to be sent instead, or None when it is there
        self.elsewhere: Callable[[Mapping[str, Any]], Awaitable[str | None]] | None = None
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Address for the agent."""
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Listen; a second start after `stop` listens on the same port again."""
        app = web.Application(client_max_size=2 * protocol.CHUNK_BYTES)
        app.router.add_get(f"{protocol.PREFIX}/agent.pyz", self._agent)
        app.router.add_post(f"{protocol.PREFIX}/claim", self._claim)
        app.router.add_post(f"{protocol.PREFIX}/heartbeat", self._heartbeat)
        app.router.add_post(f"{protocol.PREFIX}/event", self._event)
        app.router.add_put(f"{protocol.PREFIX}/runs/{{run}}/files/{{path:.+}}", self._put)
        app.router.add_get(f"{protocol.PREFIX}/runs/{{run}}/files/{{path:.+}}", self._get)
        app.router.add_post(f"{protocol.PREFIX}/runs/{{run}}/manifest", self._manifest)
        app.router.add_post(f"{protocol.PREFIX}/runs/{{run}}/wanted", self._wanted)
        app.router.add_post(f"{protocol.PREFIX}/finish", self._finish)
        app.router.add_post(f"{protocol.PREFIX}/ready", self._ready)
        app.router.add_get(f"{protocol.PREFIX}/source/{{name}}/info/refs", self._refs)
        app.router.add_post(f"{protocol.PREFIX}/source/{{name}}/git-upload-pack", self._upload_pack)
        app.router.add_get("/inputs/{text}", self._input)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening, as a bot that is being restarted does."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def until(self, happened: Callable[[], object], limit_s: float = 60.0) -> None:
        """Wait until something that we are told makes `happened` true."""
        async with self.told:
            await asyncio.wait_for(self.told.wait_for(lambda: bool(happened())), limit_s)

    def ended(self) -> dict[str, dict[str, Any]]:
        """The last `run_ended` event of each run."""
        return {event["run"]: event for event in self.events if event["kind"] == protocol.EVENT_RUN_ENDED}

    def text(self, run: str, path: str) -> str:
        """A shipped file as text."""
        return self.files[run, path].decode()

    async def _notify(self) -> None:
        async with self.told:
            self.told.notify_all()

    def _check(self, request: web.Request, kind: str) -> int:
        """Which host of the lease calls."""
        credential, _, member = request.headers.get("Authorization", "").partition("/")
        if credential != f"Bearer {CREDENTIAL}":
            raise web.HTTPUnauthorized
        if self.faults.gone:
            raise web.HTTPGone
        if self.faults.busy[kind] > 0:
            self.faults.busy[kind] -= 1
            raise web.HTTPServiceUnavailable
        return int(member or "0")

    async def _agent(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self.bundle)

    async def _claim(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        member = message["member"]
        if message[self.proof] != TOKEN or (not member and self.nonces and message["nonce"] != self.nonces[0]):
            raise web.HTTPForbidden(text=json.dumps({"sentence": "claimed by another"}))
        if not member:
            self.nonces.append(message["nonce"])
        await self._notify()
        if self.faults.lost_claims:
            self.faults.lost_claims -= 1
            assert request.transport
            request.transport.close()
        return web.json_response(
            {
                "credential": f"{CREDENTIAL}/{member}" if member else CREDENTIAL,
                "heartbeat_s": self.heartbeat_s,
                "deadline_at": self.deadline_at,
                "work": self.work,
            }
        )

    async def _heartbeat(self, request: web.Request) -> web.StreamResponse:
        member = self._check(request, "heartbeat")
        self.heartbeats.append(await request.json())
        await self._notify()
        run = self.ready.get(member, "")
        failed = [event for event in self.events if event.get("reason") and event.get("run") == run]
        abort = {"abort": run, "why": f"elsewhere: {failed[0]['sentence']}"} if failed else {}
        return web.json_response({"stop": self.faults.stop, "deadline_at": self.deadline_at, **abort})

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        member, message = self._check(request, "ready"), await request.json()
        self.ready[member] = message["run"]
        self.port = message.get("port", self.port)
        if len(self.ready) == self.work["hosts"] and len(set(self.ready.values())) == 1:
            self.met[message["run"]] = f"127.0.0.1:{self.port}"
        go = message["run"] in self.met
        return web.json_response({"go": go, "leader": self.met.get(message["run"], "")})

    async def _event(self, request: web.Request) -> web.StreamResponse:
        member = self._check(request, "event")
        self.events.append({**await request.json(), **({"member": member} if member else {})})
        await self._notify()
        return web.json_response({})

    async def _put(self, request: web.Request) -> web.StreamResponse:
        member = self._check(request, "put")
        run, path = request.match_info["run"], request.match_info["path"]
        path = f"host-{member}/{path}" if member else path
        offset = int(request.query["offset"])
        body = await request.read()
        kept = self.files.setdefault((run, path), bytearray())
        if path in self.faults.forget and offset:
            self.faults.forget.discard(path)
            del kept[len(kept) // 2 :]
        if offset == 0:
            kept.clear()
        if offset != len(kept):
            return web.json_response({"offset": len(kept)}, status=409)
        kept.extend(body)
        await self._notify()
        return web.json_response({"offset": len(kept)})

    async def _get(self, request: web.Request) -> web.StreamResponse:
        self._check(request, "get")
        kept = self.files.get((request.match_info["run"], request.match_info["path"]))
        return web.Response(body=bytes(kept)) if kept is not None else web.Response(status=404)

    async def _manifest(self, request: web.Request) -> web.StreamResponse:
        member, run = self._check(request, "manifest"), request.match_info["run"]
        place = f"host-{member}/" if member else ""
        files = (await request.json())["files"]
        wanted = []
        for item in files:
            if self.elsewhere and item["path"].startswith(f"{protocol.CHECKPOINT_FOLDER}/"):
                url = await self.elsewhere(item)
                wanted += [{"path": item["path"], "url": url}] if url else []
                continue
            path, sent_as = place + item["path"], place + item["sent_as"]
            sent = self.files.get((run, sent_as))
            if sent is not None and hashlib.sha256(sent).hexdigest() == item["sha256"]:
                self.files[run, path] = self.files.pop((run, sent_as))
            kept = self.files.get((run, path))
            if kept is None or hashlib.sha256(kept).hexdigest() != item["sha256"]:
                wanted.append({"path": item["path"], "offset": 0})
        if not member:
            self.manifests[run] = {item["path"]: item["sha256"] for item in files}
        await self._notify()
        return web.json_response({"wanted": wanted})

    async def _wanted(self, request: web.Request) -> web.StreamResponse:
        self._check(request, "wanted")
        answers = self.wanted.get(request.match_info["run"], [])
        return web.json_response(answers.pop(0)) if answers else web.json_response({}, status=404)

    async def _finish(self, request: web.Request) -> web.StreamResponse:
        if self._check(request, "finish"):
            return web.json_response({})
        self.finished = await request.json()
        await self._notify()
        return web.json_response({})

    async def _input(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=request.match_info["text"].encode())

    async def _refs(self, request: web.Request) -> web.StreamResponse:
        self._check(request, "source")
        self.fetch_headers.append(request.headers["Authorization"])
        out = await self._git(request, "--http-backend-info-refs", b"")
        body = b"001e# service=git-upload-pack\n0000" + out
        return web.Response(body=body, content_type="application/x-git-upload-pack-advertisement")

    async def _upload_pack(self, request: web.Request) -> web.StreamResponse:
        self._check(request, "source")
        out = await self._git(request, "", await request.read())
        return web.Response(body=out, content_type="application/x-git-upload-pack-result")

    async def _git(self, request: web.Request, mode: str, body: bytes) -> bytes:
        words = ["git", "upload-pack", "--stateless-rpc", *([mode] if mode else [])]
        process = await asyncio.create_subprocess_exec(
            *words,
            str(self.repositories[request.match_info["name"]]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "GIT_PROTOCOL": request.headers.get("Git-Protocol", "")},
        )
        out, _ = await process.communicate(body)
        return out
