"""The server's half of `runners.protocol` for hosts of the pool: they enrol, and ask what they are to do."""

from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from bot.core.pool import HostReport
from bot.store.codec import load
from bot.store.hosts import enrol, hear
from bot.store.tables import Host
from bot.web.agent_api import fail
from bot.web.keys import SERVICES, WAKE
from runners.protocol import PREFIX
from runners.spec import MachineOrder

T = TypeVar("T")
POLL_S = 5.0
MOST_DEVICES = 256
MAX_TEXT = 20_000


class _Enrolment(msgspec.Struct):
    code: str


def add_routes(app: web.Application) -> None:
    """Both calls."""
    app.router.add_post(f"{PREFIX}/hosts/enrol", enrolment)
    app.router.add_post(f"{PREFIX}/hosts/poll", poll)


async def enrolment(request: web.Request) -> web.Response:
    """A host shows its code and the credential that it has made; from now on the credential is enough."""
    services, body = request.app[SERVICES], await _read(request, _Enrolment)
    name = await enrol(services.database, body.code, _credential(request), services.clock())
    if name is None:
        return fail(403, "this code is unknown, used, or more than an hour old: benchbot pool add makes another")
    return web.json_response({"name": name})


async def poll(request: web.Request) -> web.Response:
    """What the host says is written down; the answer is the one order that it shall hold."""
    services, report = request.app[SERVICES], await _read(request, HostReport)
    held = tuple(replace(each, said=each.said[-MAX_TEXT:].replace("\0", "")) for each in report.holds[:MOST_DEVICES])
    report = replace(report, holds=held, labels=report.labels[:MOST_DEVICES], devices=report.devices[:MOST_DEVICES])
    if any(each.state not in ("running", "stopped") for each in held):
        return fail(400, "what a host holds is running or stopped")
    host = await hear(services.database, _credential(request), report, services.clock())
    if host is None:
        return fail(401, "this credential is no host's: enrol it again with a new code")
    request.app[WAKE]()
    wanted = host.order_id if host.state in ("sent", "running", "stopped") else ""
    start = _start(host) if host.state == "sent" else None
    return web.json_response({"order": wanted, "start": start, "poll_s": POLL_S})


def _start(host: Host) -> dict[str, Any]:
    order = load(MachineOrder, host.order)
    prefix = "env."
    return {
        "server": order.server_url,
        "lease": order.lease_id,
        "token": order.token,
        "deadline_at": order.deadline_at,
        "trusted": order.trusted,
        "member": order.member,
        "environment": {key[len(prefix) :]: text for key, text in order.options.items() if key.startswith(prefix)},
        "base_environment": order.options.get("base_environment", ""),
        "devices": host.most,
    }


def _credential(request: web.Request) -> str:
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    return credential if kind == "Bearer" else ""


async def _read(request: web.Request, kind: type[T]) -> T:
    try:
        return load(kind, await request.text())
    except (UnicodeDecodeError, msgspec.DecodeError):
        raise web.HTTPBadRequest(text="the body is not what this call takes") from None
