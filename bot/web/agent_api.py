"""The server's half of `runners.protocol`: agents claim, report and upload. Writes rows and files, decides nothing."""

import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web
from sqlalchemy import delete, func, insert, select, update

from bot.core.environments import heard
from bot.core.nouns import Call, PlannedLease
from bot.core.orders import Place, run_work
from bot.services import Services
from bot.store.codec import dump, load
from bot.store.database import Transaction
from bot.store.leases import artifacts_of, fingerprint, machine_of, members_of, runs_of
from bot.store.rows import poke
from bot.store.tables import Artifact, Lease, Machine, Member, Request, Run
from bot.web.keys import SERVICES, WAKE
from bot.web.proving import NotProvenError, proven
from runners.protocol import (
    CHECKPOINT_FOLDER,
    DEVICE_UNHEALTHY,
    EVENT_PHASE,
    EVENT_RUN_ENDED,
    EVENT_RUN_STARTED,
    INTERRUPTED,
    PREFIX,
    VERSION,
)
from runners.spec import DeviceWork, KeptFile, Offer

HEARTBEAT_S = 10.0
MAX_TEXT = 20_000
MAX_NUMBER = 2**62
LIVING = ("booting", "running")
MEMBER = web.RequestKey("member", int)
TOGETHER_S = 2.0

Handler = Callable[[web.Request, Lease], Awaitable[web.StreamResponse]]


def add_routes(app: web.Application) -> None:
    """All of the protocol but files (`agent_files`) and git, which `source` proxies."""
    app.router.add_post(f"{PREFIX}/claim", claim)
    app.router.add_post(f"{PREFIX}/heartbeat", with_lease(heartbeat))
    app.router.add_post(f"{PREFIX}/event", with_lease(event))
    app.router.add_post(f"{PREFIX}/runs/{{run}}/wanted", with_lease(wanted))
    app.router.add_post(f"{PREFIX}/finish", with_lease(finish))


def fail(status: int, sentence: str, **more: Any) -> web.Response:
    """An answer that an agent's log can show."""
    return web.json_response({"sentence": sentence, **more}, status=status)


async def lease_of(request: web.Request) -> Lease | None:
    """The lease whose credential the call carries, while it lives."""
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    if kind != "Bearer" or not credential:
        return None
    services = request.app[SERVICES]
    mine = fingerprint(credential)
    async with services.database.read() as tx:
        alone = select(Lease).where(Lease.credential_hash == mine, Lease.state.in_(LIVING))
        lease = (await tx.scalars(alone)).one_or_none()
        if lease is None:
            member = (await tx.scalars(select(Member).where(Member.credential_hash == mine))).one_or_none()
            lease = await tx.get(Lease, member.lease_id) if member else None
            request[MEMBER] = member.member if member else 0
        return lease if lease is not None and lease.state in LIVING else None


def member_of(request: web.Request) -> int:
    """Which host of the lease calls; 0 where there is only one."""
    member: int = request.get(MEMBER, 0)
    return member


def with_lease(handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A handler that is only called for a lease that lives."""

    async def checked_first(request: web.Request) -> web.StreamResponse:
        lease = await lease_of(request)
        if lease is None:
            # the lease has ended, or never was: the agent stops what it does and goes
            return fail(401, "this credential opens no lease")
        return await handler(request, lease)

    return checked_first


async def run_of_lease(request: web.Request, lease: Lease) -> Run:
    """The run that the address names. Raises HTTPNotFound when it is another lease's."""
    async with request.app[SERVICES].database.read() as tx:
        run = await tx.get(Run, request.match_info["run"])
    if run is None or run.lease_id != lease.id:
        raise web.HTTPNotFound(text="this lease has no such run")
    return run


async def body_of(request: web.Request) -> dict[str, Any]:
    """The message of a call. Raises HTTPBadRequest."""
    try:
        body = await request.json()
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise web.HTTPBadRequest(text="the body is not JSON") from None
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the body is not a JSON object")
    return body


async def claim(request: web.Request) -> web.Response:
    """Pin the agent's nonce and hand out the work; the same nonce may ask again."""
    services, body = request.app[SERVICES], await body_of(request)
    nonce = str(body.get("nonce", ""))
    if not nonce or body.get("version", VERSION) != VERSION:
        return fail(400, f"this server speaks version {VERSION} and needs a nonce")
    try:
        opens = await proven(services, body)
    except NotProvenError as doubt:
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
        planned = load(PlannedLease, lease.planned)
        member = body.get("member", 0)
        if member not in range(planned.hosts):
            return fail(400, f"this lease has {planned.hosts} hosts, from number 0 on")
        pinned = {"nonce_hash": fingerprint(nonce), "credential_hash": fingerprint(credential), "beat_at": now}
        values: dict[str, Any] = pinned
        if planned.hosts > 1:
            pinned["address"] = str(body.get("address") or request.remote)
            known = await tx.get(Member, (lease.id, member))
            second = known is not None and known.nonce_hash != fingerprint(nonce)
            values = {} if second else await _join(tx, lease, member, pinned)
        else:
            second = bool(lease.nonce_hash) and lease.nonce_hash != fingerprint(nonce)
        if second:
            ended = {"outcome": "second_claim", "poked": True, "credential_hash": ""}
            await tx.execute(update(Lease).where(Lease.id == lease.id).values(**ended))
            return fail(403, "another agent has claimed this lease")
        if values:
            await tx.execute(update(Lease).where(Lease.id == lease.id).values(poked=True, phase="preparing", **values))
        owner = await tx.get_one(Request, lease.request_id)
        runs = await runs_of(tx, [lease.id])
        machine = await machine_of(tx, lease.id)
        files = await artifacts_of(tx, [run.id for run in runs]) if lease.continued else ()
    request.app[WAKE]()
    proxied = f"{services.settings.agent_url}{PREFIX}/source/{owner.full_name}.git"
    offer = load(Offer, machine.offer) if machine else Offer(backend="")
    place = Place(
        # a local run is about a checkout on this host, whose path stands in for the repository's name
        source_url=owner.full_name if owner.kind == "local" else proxied,
        scripts_url=f"{services.settings.agent_url}{PREFIX}/source/{{repository}}.git",
        run_ids=tuple(run.id for run in runs),
        ended=frozenset(run.id for run in runs if run.state in ("done", "failed")),
        kept={run.id: _kept(run, files, member) for run in runs},
        interruptible=offer.provisioning == "spot",
        devices=DeviceWork(kind=offer.device, count=offer.devices) if offer.device else None,
    )
    work = run_work(load(Call, owner.call), planned, place)
    # what happens on one host is to be known on the others at once
    heartbeat_s = HEARTBEAT_S if planned.hosts == 1 else TOGETHER_S
    answer = {"credential": credential, "heartbeat_s": heartbeat_s, "deadline_at": lease.deadline_at}
    return web.json_response({**answer, "work": json.loads(dump(work))})


async def _join(tx: Transaction, lease: Lease, member: int, pinned: dict[str, Any]) -> dict[str, Any]:
    """One host of several has claimed. Returns what the lease itself is to know: it is claimed when all have."""
    await tx.execute(delete(Member).where(Member.lease_id == lease.id, Member.member == member))
    await tx.execute(insert(Member).values(lease_id=lease.id, member=member, **pinned))
    members = await members_of(tx, lease.id)
    if len(members) < load(PlannedLease, lease.planned).hosts:
        return {}
    return {"nonce_hash": members[0].nonce_hash, "beat_at": pinned["beat_at"]}


def _kept(run: Run, files: Sequence[Artifact], member: int) -> tuple[KeptFile, ...]:
    """What an earlier machine has shipped of a run; checkpoints only if they are whole.

    All hosts of a lease go on from the checkpoints of the first one.
    """
    return tuple(
        KeptFile(path=one.path, size=one.size, sha256=one.sha256)
        for one in files
        if one.run_id == run.id
        and not one.path.startswith("host-")
        and (one.sha256 if one.path.startswith(f"{CHECKPOINT_FOLDER}/") else member == 0)
    )


async def heartbeat(request: web.Request, lease: Lease) -> web.Response:
    """The agent lives. The answer may ask it to stop."""
    await _beat(request, lease)
    stop = "cancelled" if lease.want == "cancel" else ""
    answer = {"stop": stop, "deadline_at": lease.deadline_at}
    planned = load(PlannedLease, lease.planned)
    if planned.hosts > 1 or planned.stop_diverged:
        async with request.app[SERVICES].database.read() as tx:
            runs = await runs_of(tx, [lease.id])
            answer |= _fate(await members_of(tx, lease.id), runs, member_of(request)) if planned.hosts > 1 else {}
        answer |= next(({"abort": run.id, "why": run.stop} for run in runs if run.state == "running" and run.stop), {})
    return web.json_response(answer)


def _fate(members: Sequence[Member], runs: Sequence[Run], mine: int) -> dict[str, str]:
    """The run that this host is to end because it has failed on another one, and why."""
    run = members[mine].ready if mine < len(members) else ""
    for other in members:
        if run and other.failed == run and other.member != mine:
            return {"abort": run, "why": f"host {other.member}: {other.sentence}"}
    if mine and run in [one.id for one in runs if one.state == "failed"]:
        return {"abort": run, "why": "it has failed on host 0"}
    return {}


async def wanted(request: web.Request, lease: Lease) -> web.Response:
    """Whether a run that may not be needed any more is; the lease's worker looks at what has been measured."""
    services = request.app[SERVICES]
    async with services.database.write() as tx:
        run = await tx.get(Run, request.match_info["run"])
        if run is None or run.lease_id != lease.id:
            # what is not needed is no run of the lease any more
            return web.json_response({"wanted": False})
        if lease.looked >= run.position:
            return web.json_response({"wanted": True})
        await tx.execute(poke(Lease, Lease.id == lease.id))
    request.app[WAKE]()
    return web.json_response({"later": True})


async def _beat(request: web.Request, lease: Lease, phase: str = "") -> None:
    services, mine = request.app[SERVICES], member_of(request)
    values: dict[str, Any] = {"beat_at": services.clock()}
    async with services.database.write() as tx:
        if load(PlannedLease, lease.planned).hosts > 1:
            here = (Member.lease_id == lease.id, Member.member == mine)
            await tx.execute(update(Member).where(*here).values(**values))
            # the lease is as silent as its most silent host
            values["beat_at"] = await tx.scalar(select(func.min(Member.beat_at)).where(Member.lease_id == lease.id))
        if phase and phase != lease.phase:
            values["phase"] = phase
            await tx.execute(poke(Request, Request.id == lease.request_id))
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(**values))


async def event(request: web.Request, lease: Lease) -> web.Response:
    """Something happened on the machine: a phase began, a run started or ended."""
    services, body = request.app[SERVICES], await body_of(request)
    kind, run_id = body.get("kind"), str(body.get("run") or "")
    async with services.database.read() as tx:
        runs = {run.id: run for run in await runs_of(tx, [lease.id])}
    run = runs.get(run_id)
    if member_of(request):
        await _heard_of_another(request, lease, run, body)
    elif kind == EVENT_PHASE:
        await _beat(request, lease, str(body.get("phase", ""))[:100])
    elif kind in (EVENT_RUN_STARTED, EVENT_RUN_ENDED) and run is not None:
        values = _started(services) if kind == EVENT_RUN_STARTED else _ended(body)
        async with services.database.write() as tx:
            await tx.execute(update(Run).where(Run.id == run.id, Run.state.in_(("queued", "running"))).values(**values))
        if kind == EVENT_RUN_STARTED:
            most = "at most " if load(PlannedLease, lease.planned).until_decided else ""
            number = 1 + list(runs).index(run.id)
            await _beat(request, lease, f"run {number} of {most}{len(runs)}: {run.side}, seed {run.seed}")
    else:
        return fail(400, "unknown event or run")
    request.app[WAKE]()
    return web.json_response({})


async def _heard_of_another(request: web.Request, lease: Lease, run: Run | None, body: dict[str, Any]) -> None:
    """Of hosts other than the first only that a run failed matters: it fails everywhere."""
    await _beat(request, lease)
    sentence = str(body.get("sentence") or body.get("reason") or "")[:500]
    if body.get("kind") != EVENT_RUN_ENDED or run is None or not body.get("reason"):
        return
    mine = member_of(request)
    async with request.app[SERVICES].database.write() as tx:
        here = (Member.lease_id == lease.id, Member.member == mine)
        await tx.execute(update(Member).where(*here).values(failed=run.id, sentence=sentence))
        late = {"state": "failed", "reason": str(body["reason"])[:40], "sentence": f"host {mine}: {sentence}"}
        await tx.execute(update(Run).where(Run.id == run.id, Run.state == "done").values(**late))


def _started(services: Services) -> dict[str, Any]:
    return {"state": "running", "started_at": services.clock()}


def _ended(body: dict[str, Any]) -> dict[str, Any]:
    reason = str(body.get("reason") or "")[:40]
    phases = body.get("phases")
    phases = phases if isinstance(phases, dict) else {}
    environment = heard(body.get("environment"))
    return {
        "state": "failed" if reason else "done",
        "reason": reason,
        "sentence": str(body.get("sentence") or "")[:500],
        "seconds": _number(body.get("seconds")),
        "exit_status": _whole(body.get("exit")),
        "log_tail": str(body.get("log_tail") or "")[-MAX_TEXT:],
        "imported": str(body.get("imported") or "")[:500],
        "peak_rss_bytes": _whole(body.get("peak_rss_bytes")),
        "peak_device_bytes": _whole(body.get("peak_device_bytes")),
        "device_trouble": str(body.get("device_trouble") or "")[:300],
        "environment": dump(environment) if environment else "",
        **{f"{phase}_s": _number(phases.get(phase)) for phase in ("checkout", "setup", "inputs")},
    }


def _number(told: object) -> float | None:
    """A number of the agent's that a row can hold: JSON has NaN and more digits than anybody needs."""
    fits = isinstance(told, int | float) and not isinstance(told, bool) and -MAX_NUMBER <= told <= MAX_NUMBER
    return float(told) if fits and isinstance(told, int | float) else None


def _whole(told: object) -> int | None:
    return told if isinstance(told, int) and _number(told) is not None else None


async def finish(request: web.Request, lease: Lease) -> web.Response:
    """The agent has nothing left to do. What it could not run is failed with its words."""
    services, body = request.app[SERVICES], await body_of(request)
    outcome = str(body.get("outcome") or "done")[:40]
    if member_of(request) and outcome not in (INTERRUPTED, DEVICE_UNHEALTHY):
        # the first host speaks for all
        return web.json_response({})
    async with services.database.write() as tx:
        unfinished = (Run.lease_id == lease.id, Run.state.in_(("queued", "running")))
        said = {"reason": "agent_error" if outcome == "done" else outcome, "sentence": str(body.get("sentence") or "")}
        if outcome not in (INTERRUPTED, DEVICE_UNHEALTHY):
            await tx.execute(update(Run).where(*unfinished).values(state="failed", **said))
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(outcome=outcome, poked=True))
        mine = (Machine.lease_id == lease.id, Machine.state != "gone")
        if outcome == DEVICE_UNHEALTHY:
            why = {"code": outcome, "sentence": str(body.get("sentence") or "")[:500]}
            await tx.execute(update(Machine).where(*mine).values(**why))
        await tx.execute(poke(Machine, *mine))
    request.app[WAKE]()
    return web.json_response({})
