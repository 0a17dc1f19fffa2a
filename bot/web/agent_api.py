"""The server's half of `runners.protocol`: agents claim, report and upload. Writes rows and files, decides nothing."""

import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from bot.artifacts.base import WrongOffset, checked
from bot.core.nouns import Call, PlannedLease
from bot.core.orders import Place, run_work
from bot.services import Services
from bot.store.codec import dump, load
from bot.store.leases import fingerprint, machine_of, runs_of
from bot.store.rows import poke
from bot.store.tables import Artifact, Lease, Machine, Request, Run
from bot.web.keys import SERVICES, WAKE
from runners.backends.base import BackendError
from runners.protocol import CHUNK_BYTES, EVENT_PHASE, EVENT_RUN_ENDED, EVENT_RUN_STARTED, PREFIX, VERSION

HEARTBEAT_S = 10.0
MAX_TEXT = 20_000
MAX_FILES = 5_000
MAX_RUN_BYTES = 20 * 1024**3
LIVING = ("booting", "running")

Handler = Callable[[web.Request, Lease], Awaitable[web.Response]]


def add_routes(app: web.Application) -> None:
    """All of the protocol but git, which `source` proxies."""
    app.router.add_post(f"{PREFIX}/claim", claim)
    app.router.add_post(f"{PREFIX}/heartbeat", _with_lease(heartbeat))
    app.router.add_post(f"{PREFIX}/event", _with_lease(event))
    app.router.add_put(PREFIX + "/runs/{run}/files/{path:.+}", _with_lease(upload))
    app.router.add_post(PREFIX + "/runs/{run}/manifest", _with_lease(manifest))
    app.router.add_post(f"{PREFIX}/finish", _with_lease(finish))


def fail(status: int, sentence: str, **more: Any) -> web.Response:
    """An answer that an agent's log can show."""
    return web.json_response({"sentence": sentence, **more}, status=status)


async def lease_of(request: web.Request) -> Lease | None:
    """The lease whose credential the call carries, while it lives."""
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    if kind != "Bearer" or not credential:
        return None
    services = request.app[SERVICES]
    async with services.database.read() as tx:
        found = select(Lease).where(Lease.credential_hash == fingerprint(credential), Lease.state.in_(LIVING))
        return (await tx.scalars(found)).one_or_none()


def _with_lease(handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def checked_first(request: web.Request) -> web.Response:
        lease = await lease_of(request)
        if lease is None:
            # the lease has ended, or never was: the agent stops what it does and goes
            return fail(401, "this credential opens no lease")
        return await handler(request, lease)

    return checked_first


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise web.HTTPBadRequest(text="the body is not JSON") from None
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the body is not a JSON object")
    return body


async def claim(request: web.Request) -> web.Response:
    """Pin the agent's nonce and hand out the work; the same nonce may ask again."""
    services, body = request.app[SERVICES], await _body(request)
    nonce = str(body.get("nonce", ""))
    if not nonce or body.get("version", VERSION) != VERSION:
        return fail(400, f"this server speaks version {VERSION} and needs a nonce")
    try:
        opens = await _opens(services, body)
    except _NotProvenError as doubt:
        return fail(doubt.status, str(doubt))
    credential = services.new_id() + services.new_id()
    now = services.clock()
    async with services.database.write() as tx:
        lease = await tx.get(Lease, str(body.get("lease", "")))
        if (
            lease is None
            or lease.state not in LIVING
            or not lease.token_hash
            or not hmac.compare_digest(lease.token_hash, opens)
        ):
            return fail(401, "this token opens no lease")
        if lease.nonce_hash and lease.nonce_hash != fingerprint(nonce):
            ended = {"outcome": "second_claim", "poked": True, "credential_hash": ""}
            await tx.execute(update(Lease).where(Lease.id == lease.id).values(**ended))
            return fail(403, "another agent has claimed this lease")
        pinned = {"nonce_hash": fingerprint(nonce), "credential_hash": fingerprint(credential), "beat_at": now}
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(poked=True, phase="preparing", **pinned))
        owner = await tx.get_one(Request, lease.request_id)
        runs = await runs_of(tx, [lease.id])
    request.app[WAKE]()
    proxied = f"{services.settings.agent_url}{PREFIX}/source/{owner.full_name}.git"
    place = Place(
        # a local run is about a checkout on this host, whose path stands in for the repository's name
        source_url=owner.full_name if owner.kind == "local" else proxied,
        scripts_url=f"{services.settings.agent_url}{PREFIX}/source/{{repository}}.git",
        run_ids=tuple(run.id for run in runs),
    )
    work = run_work(load(Call, owner.call), load(PlannedLease, lease.planned), place)
    answer = {"credential": credential, "heartbeat_s": HEARTBEAT_S, "deadline_at": lease.deadline_at}
    return web.json_response({**answer, "work": json.loads(dump(work))})


class _NotProvenError(Exception):
    """An identity that does not open its lease, or that cannot be looked at now (503: the agent tries again)."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def _opens(services: Services, body: dict[str, Any]) -> str:
    """The fingerprint of the token that a claim proves: what it carries, or that of the machine which it shows to be.

    An identity is as good as the token of its machine's order, and ends with it when the lease gets another machine.
    """
    identity = str(body.get("identity", ""))
    if not identity:
        return fingerprint(str(body.get("token", "")))
    async with services.database.read() as tx:
        lease = await tx.get(Lease, str(body.get("lease", "")))
        machine = await machine_of(tx, lease.id) if lease and lease.state in LIVING else None
    backend = services.backends.get(machine.backend) if machine else None
    if lease is None or machine is None or backend is None or not lease.token_hash:
        raise _NotProvenError(401, "this identity opens no lease")
    try:
        doubt = await backend.doubts(identity, machine.id, services.settings.agent_url)
    except BackendError as error:
        doubt = error.sentence
    except OSError:
        raise _NotProvenError(503, "the identity cannot be checked now") from None
    if doubt:
        raise _NotProvenError(401, f"this identity opens no lease: {doubt}")
    return lease.token_hash


async def heartbeat(request: web.Request, lease: Lease) -> web.Response:
    """The agent lives. The answer may ask it to stop."""
    await _beat(request.app[SERVICES], lease)
    stop = "cancelled" if lease.want == "cancel" else ""
    return web.json_response({"stop": stop, "deadline_at": lease.deadline_at})


async def _beat(services: Services, lease: Lease, phase: str = "") -> None:
    values: dict[str, Any] = {"beat_at": services.clock()}
    async with services.database.write() as tx:
        if phase and phase != lease.phase:
            values["phase"] = phase
            await tx.execute(poke(Request, Request.id == lease.request_id))
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(**values))


async def event(request: web.Request, lease: Lease) -> web.Response:
    """Something happened on the machine: a phase began, a run started or ended."""
    services, body = request.app[SERVICES], await _body(request)
    kind, run_id = body.get("kind"), str(body.get("run") or "")
    async with services.database.read() as tx:
        runs = {run.id: run for run in await runs_of(tx, [lease.id])}
    run = runs.get(run_id)
    if kind == EVENT_PHASE:
        await _beat(services, lease, str(body.get("phase", ""))[:100])
    elif kind in (EVENT_RUN_STARTED, EVENT_RUN_ENDED) and run is not None:
        values = _started(services) if kind == EVENT_RUN_STARTED else _ended(body)
        async with services.database.write() as tx:
            await tx.execute(update(Run).where(Run.id == run.id, Run.state.in_(("queued", "running"))).values(**values))
        if kind == EVENT_RUN_STARTED:
            await _beat(services, lease, f"run {run.position + 1} of {len(runs)}: {run.side}, seed {run.seed}")
    else:
        return fail(400, "unknown event or run")
    request.app[WAKE]()
    return web.json_response({})


def _started(services: Services) -> dict[str, Any]:
    return {"state": "running", "started_at": services.clock()}


def _ended(body: dict[str, Any]) -> dict[str, Any]:
    reason = str(body.get("reason") or "")[:40]
    seconds, peak = body.get("seconds"), body.get("peak_rss_bytes")
    return {
        "state": "failed" if reason else "done",
        "reason": reason,
        "sentence": str(body.get("sentence") or "")[:500],
        "seconds": float(seconds) if isinstance(seconds, int | float) else None,
        "exit_status": body["exit"] if isinstance(body.get("exit"), int) else None,
        "log_tail": str(body.get("log_tail") or "")[-MAX_TEXT:],
        "imported": str(body.get("imported") or "")[:500],
        "peak_rss_bytes": peak if isinstance(peak, int) else None,
    }


async def _run_of(services: Services, lease: Lease, request: web.Request) -> Run:
    async with services.database.read() as tx:
        run = await tx.get(Run, request.match_info["run"])
    if run is None or run.lease_id != lease.id:
        raise web.HTTPNotFound(text="this lease has no such run")
    return run


async def upload(request: web.Request, lease: Lease) -> web.Response:
    """Append the body to a file of a run at `offset`."""
    services = request.app[SERVICES]
    run = await _run_of(services, lease, request)
    try:
        path = str(checked(request.match_info["path"]))
        offset = int(request.query.get("offset", "0"))
    except ValueError as error:
        return fail(400, str(error))
    if (request.content_length or 0) > CHUNK_BYTES:
        return fail(413, f"at most {CHUNK_BYTES} bytes in one piece")
    data = await request.read()
    async with services.database.read() as tx:
        known = (await tx.execute(select(Artifact.path, Artifact.size).where(Artifact.run_id == run.id))).all()
    if sum(size for _, size in known) > MAX_RUN_BYTES or (len(known) >= MAX_FILES and path not in dict(known)):
        return fail(413, "the run has more or larger files than are kept")
    try:
        end = await services.artifacts.append(run.id, path, offset, data)
    except WrongOffset as wrong:
        return fail(409, str(wrong), offset=wrong.offset)
    except OSError:
        return fail(400, "a file and a folder have the same name")
    insert = sqlite_insert if services.database.engine.dialect.name == "sqlite" else postgres_insert
    row = insert(Artifact).values(id=services.new_id(), run_id=run.id, path=path, size=end)
    async with services.database.write() as tx:
        await tx.execute(row.on_conflict_do_update(index_elements=["run_id", "path"], set_={"size": end}))
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(beat_at=services.clock()))
    return web.json_response({"offset": end})


async def manifest(request: web.Request, lease: Lease) -> web.Response:
    """The complete list of a run's files; the answer names what differs and from where it is to be sent again."""
    services, body = request.app[SERVICES], await _body(request)
    run = await _run_of(services, lease, request)
    wanted = []
    confirmed = {}
    for entry in body.get("files", []):
        try:
            path, size, digest = str(checked(entry["path"])), int(entry["size"]), str(entry["sha256"])
        except (ValueError, TypeError, KeyError):
            return fail(400, "an entry needs a plain path, size and sha256")
        have = await services.artifacts.size(run.id, path)
        if have == size and await services.artifacts.sha256(run.id, path) == digest:
            confirmed[path] = digest
            continue
        start = have if have < size else 0
        if have >= size:
            await services.artifacts.truncate(run.id, path, 0)
        wanted.append({"path": path, "offset": start})
    async with services.database.write() as tx:
        for path, digest in confirmed.items():
            await tx.execute(
                update(Artifact).where(Artifact.run_id == run.id, Artifact.path == path).values(sha256=digest)
            )
    return web.json_response({"wanted": wanted})


async def finish(request: web.Request, lease: Lease) -> web.Response:
    """The agent has nothing left to do. What it could not run is failed with its words."""
    services, body = request.app[SERVICES], await _body(request)
    outcome = str(body.get("outcome") or "done")[:40]
    async with services.database.write() as tx:
        unfinished = (Run.lease_id == lease.id, Run.state.in_(("queued", "running")))
        said = {"reason": "agent_error" if outcome == "done" else outcome, "sentence": str(body.get("sentence") or "")}
        await tx.execute(update(Run).where(*unfinished).values(state="failed", **said))
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(outcome=outcome, poked=True))
        await tx.execute(poke(Machine, Machine.lease_id == lease.id))
    request.app[WAKE]()
    return web.json_response({})
