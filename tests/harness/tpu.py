"""A Cloud TPU on loopback: nodes, queued resources and operations, with the faults that a story asks for.

What it answers is checked against Google's discovery documents; how it behaves in time is our reading of Google's
documentation.
"""

import calendar
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from runners.backends.base import BackendSettings
from runners.backends.tpu import TpuBackend
from runners.spec import MachineOrder, Offer
from tests.harness.discovery import Description, description
from tests.harness.google import PROJECT, GoogleService, Json

ACCOUNT = f"machines@{PROJECT}.iam.gserviceaccount.com"
# what each zone knows
TYPES = ("v2-8", "v4-16", "v5litepod-1", "v5litepod-4", "v5litepod-8", "v6e-8")
VERSIONS = ("tpu-ubuntu2204-base", "v2-alpha-tpuv5-lite", "v2-alpha-tpuv6e")
ZONES = ("us-central1-a", "us-west4-b")
_HOSTS = {"v4-16": 2}
_STATUS = {
    "INVALID_ARGUMENT": (3, 400),
    "NOT_FOUND": (5, 404),
    "ALREADY_EXISTS": (6, 409),
    "PERMISSION_DENIED": (7, 403),
    "RESOURCE_EXHAUSTED": (8, 429),
    "FAILED_PRECONDITION": (9, 400),
    "INTERNAL": (13, 500),
    "UNAVAILABLE": (14, 503),
    "UNAUTHENTICATED": (16, 401),
}


@dataclass(frozen=True)
class Fault:
    """One error of Google's: the name of its code, its sentence, and what else it says."""

    name: str
    sentence: str
    details: tuple[Json, ...] = ()


@dataclass
class Faults:
    """What goes wrong, by zone."""

    early: dict[str, Fault] = field(default_factory=dict)
    late: dict[str, Fault] = field(default_factory=dict)
    late_s: float = 5.0
    # the state in which a node stays after a late error; empty: it vanishes
    leaves: str = ""
    lost_replies: int = 0
    failing_deletes: int = 0
    never_boots: bool = False


@dataclass
class Thing:
    """A node or a queued resource, since when it is in its state, and when it goes."""

    body: Json
    zone: str
    state: str
    since: float
    gone_at: float | None = None
    operation: Json = field(default_factory=dict)
    said: Json = field(default_factory=dict)

    def become(self, state: str, now: float) -> None:
        """Enter a state."""
        self.state, self.since = state, now


class _TwoVersions:
    """The judge of both versions of the API."""

    def check_request(self, method: str, path: str, query: Mapping[str, str], body: Any) -> list[str]:
        return _judge(path).check_request(method, path, query, body)

    def check_response(self, method: str, path: str, status: int, body: Any) -> list[str]:
        return _judge(path).check_response(method, path, status, body)


class CloudTpu(GoogleService):
    """The API of one project. Nodes boot `boot_s` after their turn; the queue takes `queue_s`."""

    def __init__(
        self, clock: Callable[[], float], *, boot_s: float = 0.0, queue_s: float = 0.0, delete_s: float = 0.0
    ) -> None:
        super().__init__(clock, _TwoVersions(), "tpu.googleapis.com")
        self.boot_s, self.queue_s, self.delete_s = boot_s, queue_s, delete_s
        self.faults = Faults()
        self.nodes: dict[tuple[str, str], Thing] = {}
        self.queued: dict[tuple[str, str], Thing] = {}
        self.operations: list[Json] = []
        # what a zone does not have: a type or a version
        self.without: set[tuple[str, str]] = set()
        self.orders_taken: list[tuple[str, str, str]] = []  # zone, kind, name
        self._numbers = iter(range(1, 1_000_000))

    def routes(self, app: web.Application) -> None:
        """What is answered."""
        for version in ("v2", "v2alpha1"):
            zone = f"/{version}/projects/{PROJECT}/locations/{{zone}}"
            app.router.add_post(f"{zone}/queuedResources", self._queue)
        zone = f"/v2/projects/{PROJECT}/locations/{{zone}}"
        app.router.add_post(f"{zone}/nodes", self._create)
        app.router.add_post(f"{zone}/nodes/{{name:[^/:]+}}:getGuestAttributes", self._guest)
        app.router.add_get(f"{zone}/{{kind:nodes|queuedResources}}/{{name:[^/:]+}}", self._get)
        app.router.add_get(f"{zone}/{{kind:nodes|queuedResources|operations}}", self._list)
        app.router.add_get(f"{zone}/{{kind:acceleratorTypes|runtimeVersions}}", self._known_things)
        app.router.add_delete(f"{zone}/nodes/{{name:[^/:]+}}", self._delete_node)
        app.router.add_delete(f"{zone}/queuedResources/{{name:[^/:]+}}", self._delete_queued)

    def refusal(self) -> web.Response:
        """For a call that nobody signed."""
        return _error(Fault("UNAUTHENTICATED", "Request had invalid authentication credentials."))

    # ---- for stories ------------------------------------------------------------------------------------------------

    def backend(self, folder: Path, **options: str) -> TpuBackend:
        """Our backend before this cloud, with a key that it accepts."""
        key = folder / "tpu-key.json"
        key.write_text(json.dumps(self.credentials()))
        chosen = {"project": PROJECT, "endpoint": self.url, "credentials_file": str(key), "service_account": ACCOUNT}
        settings = BackendSettings(deployment="main", folder=folder, clock=self.clock, options={**chosen, **options})
        return TpuBackend(settings)

    def orders(self, server_url: str) -> dict[str, MachineOrder]:
        """What each host of a running node knows, from the node's metadata and its own number."""
        self.move()
        found = {}
        for (zone, name), node in self.nodes.items():
            if node.state != "READY":
                continue
            said = re.search(r"--server (\S+) --lease (\S+)", node.body["metadata"]["startup-script"])
            assert said
            assert said[1] == server_url
            order = MachineOrder(
                name=name,
                deployment=node.body["labels"]["benchbot"],
                lease_id=said[2],
                server_url=said[1],
                token=node.body["metadata"]["benchbot-token"],
                deadline_at=0.0,
                offer=Offer(backend="tpu", zone=zone),
            )
            hosts = _HOSTS.get(node.body["acceleratorType"], 1)
            each = (
                [replace(order, name=f"{name}-{host}", member=host) for host in range(hosts)] if hosts > 1 else [order]
            )
            found |= {one.name: one for one in each}
        return found

    def preempt(self, name: str) -> None:
        """Take a node away: a queued one vanishes and its queued resource tells it, another one stays and holds on."""
        now = self.clock()
        for key in [key for key in self.nodes if key[1] == name]:
            if key in self.queued:
                del self.nodes[key]
                self.queued[key].become("SUSPENDED", now)
                self.queued[key].said = {"stateInitiator": "SERVICE", "suspendedData": {}}
            else:
                self.nodes[key].become("PREEMPTED", now)

    # ---- what happens by itself -------------------------------------------------------------------------------------

    def move(self) -> None:
        """What has happened since the last call."""
        now = self.clock()
        for key, thing in list(self.queued.items()):
            self._move_queued(key, thing, now)
        for key, thing in list(self.nodes.items()):
            self._move_node(key, thing, now)
        for things in (self.queued, self.nodes):
            for key in [key for key, thing in things.items() if thing.gone_at is not None and now >= thing.gone_at]:
                del things[key]

    def _move_queued(self, key: tuple[str, str], thing: Thing, now: float) -> None:
        policy = thing.body.get("queueingPolicy", {})
        until = calendar.timegm(time.strptime(policy["validUntilTime"], "%Y-%m-%dT%H:%M:%SZ"))
        if thing.state == "WAITING_FOR_RESOURCES":
            if now >= until:
                self._fail(thing, Fault("RESOURCE_EXHAUSTED", "The request was not fulfilled in time."), now)
            elif key[0] in self.faults.late and now >= thing.since + self.faults.late_s:
                self._fail(thing, self.faults.late[key[0]], now)
            elif key[0] not in self.faults.late and now >= thing.since + self.queue_s:
                (spec,) = thing.body["tpu"]["nodeSpec"]
                thing.become("PROVISIONING", now)
                self.nodes[key] = Thing(spec["node"], key[0], "CREATING", now)
        if thing.state == "PROVISIONING" and self.nodes[key].state == "READY":
            thing.become("ACTIVE", now)
        limit = thing.body.get("runDuration", {}).get("maxRunDuration", "")
        if thing.state == "ACTIVE" and limit and now >= thing.since + int(limit.rstrip("s")):
            self.preempt(key[1])

    def _move_node(self, key: tuple[str, str], node: Thing, now: float) -> None:
        fault = self.faults.late.get(key[0])
        if fault is not None and node.operation and not node.operation["done"]:
            if now >= node.since + self.faults.late_s:
                node.operation |= {"done": True, "error": _status(fault)}
                if self.faults.leaves:
                    node.become(self.faults.leaves, now)
                else:
                    del self.nodes[key]
            return
        failed = self.faults.never_boots or "error" in node.operation
        if node.state == "CREATING" and now >= node.since + self.boot_s and not failed:
            node.become("READY", now)
            node.operation |= {"done": True}

    def _fail(self, thing: Thing, fault: Fault, now: float) -> None:
        thing.become("FAILED", now)
        thing.said = {"stateInitiator": "SERVICE", "failedData": {"error": _status(fault)}}

    # ---- calls ------------------------------------------------------------------------------------------------------

    async def _create(self, request: web.Request) -> web.Response:
        zone, name, body = request.match_info["zone"], request.query.get("nodeId", ""), await request.json()
        refused = self._refused(zone, name, body, self.nodes)
        if refused is not None:
            return refused
        operation = self._operation("create", zone, "nodes", name, done=False)
        self.nodes[zone, name] = Thing(body, zone, "CREATING", self.clock(), operation=operation)
        return self._taken(request, zone, "nodes", name, operation)

    async def _queue(self, request: web.Request) -> web.Response:
        zone, body = request.match_info["zone"], await request.json()
        name, (spec,) = request.query.get("queuedResourceId", ""), body["tpu"]["nodeSpec"]
        wrong = _wrong_queued(body)
        if wrong:
            return _error(Fault("INVALID_ARGUMENT", wrong))
        refused = self._refused(zone, name, spec["node"], self.queued)
        if refused is not None:
            return refused
        operation = self._operation("create", zone, "queuedResources", name)
        self.queued[zone, name] = Thing(body, zone, "WAITING_FOR_RESOURCES", self.clock())
        return self._taken(request, zone, "queuedResources", name, operation)

    def _refused(self, zone: str, name: str, node: Json, things: Mapping[Any, Thing]) -> web.Response | None:
        wrong = _wrong(name, node)
        if wrong:
            return _error(Fault("INVALID_ARGUMENT", wrong))
        if zone in self.faults.early:
            return _error(self.faults.early[zone])
        if (zone, name) in things:
            return _error(Fault("ALREADY_EXISTS", f"Resource '{name}' already exists"))
        return None

    def _taken(self, request: web.Request, zone: str, kind: str, name: str, operation: Json) -> web.Response:
        self.orders_taken.append((zone, kind, name))
        if self.faults.lost_replies > 0:
            self.faults.lost_replies -= 1
            assert request.transport
            request.transport.close()
        return web.json_response(operation)

    async def _get(self, request: web.Request) -> web.Response:
        zone, kind, name = (request.match_info[key] for key in ("zone", "kind", "name"))
        found = self._things(kind).get((zone, name))
        return web.json_response(_shown(kind, name, found)) if found else _missing(request)

    async def _list(self, request: web.Request) -> web.Response:
        """One to a page, so that nobody forgets the next."""
        zone, kind = request.match_info["zone"], request.match_info["kind"]
        if kind == "operations":
            found = [one for one in self.operations if f"/locations/{zone}/" in one["name"]]
        else:
            things = self._things(kind).items()
            found = [_shown(kind, name, thing) for (place, name), thing in things if zone in (place, "-")]
        return _page(request, kind, found)

    async def _known_things(self, request: web.Request) -> web.Response:
        """What may be ordered in a zone."""
        zone, kind = request.match_info["zone"], request.match_info["kind"]
        if zone not in ZONES:
            said = f"Permission denied on 'locations/{zone}' (or it may not exist)."
            return _error(Fault("PERMISSION_DENIED", said))
        word, names = ("type", TYPES) if kind == "acceleratorTypes" else ("version", VERSIONS)
        place = f"projects/{PROJECT}/locations/{zone}/{kind}"
        found = [{"name": f"{place}/{name}", word: name} for name in names if (zone, name) not in self.without]
        return _page(request, kind, found)

    async def _delete_node(self, request: web.Request) -> web.Response:
        zone, name = request.match_info["zone"], request.match_info["name"]
        node = self.nodes.get((zone, name))
        if node is None:
            return _missing(request)
        if self._fails():
            return _error(Fault("UNAVAILABLE", "The service is currently unavailable."))
        if node.state == "DELETING" or (node.operation and not node.operation["done"]):
            return _error(Fault("FAILED_PRECONDITION", f"The node is in state {node.state}."))
        self._end(node)
        return web.json_response(self._operation("delete", zone, "nodes", name))

    async def _delete_queued(self, request: web.Request) -> web.Response:
        zone, name = request.match_info["zone"], request.match_info["name"]
        queued, node = self.queued.get((zone, name)), self.nodes.get((zone, name))
        if queued is None:
            return _missing(request)
        if self._fails():
            return _error(Fault("UNAVAILABLE", "The service is currently unavailable."))
        if queued.state == "DELETING" or (node and request.query.get("force") != "true"):
            return _error(Fault("FAILED_PRECONDITION", f"The queued resource is in state {queued.state}."))
        for thing in (queued, node):
            if thing:
                self._end(thing)
        return web.json_response(self._operation("delete", zone, "queuedResources", name))

    async def _guest(self, request: web.Request) -> web.Response:
        if (request.match_info["zone"], request.match_info["name"]) not in self.nodes:
            return _missing(request)
        items = [{"namespace": "benchbot", "key": "stage", "value": "booted"}]
        return web.json_response({"guestAttributes": [{"queryPath": "benchbot/", "queryValue": {"items": items}}]})

    def _things(self, kind: str) -> dict[tuple[str, str], Thing]:
        return self.nodes if kind == "nodes" else self.queued

    def _fails(self) -> bool:
        self.faults.failing_deletes -= 1
        return self.faults.failing_deletes >= 0

    def _end(self, thing: Thing) -> None:
        thing.become("DELETING", self.clock())
        thing.gone_at = self.clock() + self.delete_s

    def _operation(self, verb: str, zone: str, kind: str, name: str, *, done: bool = True) -> Json:
        number = next(self._numbers)
        place = f"projects/{PROJECT}/locations/{zone}"
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.clock())) + f".{number % 1000:03d}Z"
        operation = {
            "name": f"{place}/operations/operation-{number}",
            "metadata": {
                "@type": "type.googleapis.com/google.cloud.common.OperationMetadata",
                "createTime": stamp,
                "target": f"{place}/{kind}/{name}",
                "verb": verb,
                "apiVersion": "v2",
            },
            "done": done,
        }
        self.operations.append(operation)
        return operation


def _page(request: web.Request, kind: str, found: list[Json]) -> web.Response:
    at = int(request.query.get("pageToken", "0"))
    more = {"nextPageToken": str(at + 1)} if at + 1 < len(found) else {}
    return web.json_response({kind: found[at : at + 1], **more})


def _judge(path: str) -> Description:
    return description("tpu.v2alpha1" if path.startswith("/v2alpha1/") else "tpu.v2")


def _shown(kind: str, name: str, thing: Thing) -> Json:
    full = f"projects/{PROJECT}/locations/{thing.zone}/{kind}/{name}"
    if kind == "nodes":
        return {**thing.body, "name": full, "state": thing.state, "health": "HEALTHY"}
    # what only the preview knows is not shown by v2
    body = {key: value for key, value in thing.body.items() if key not in ("provisioningModel", "runDuration")}
    return {**body, "name": full, "state": {"state": thing.state, **thing.said}}


def _wrong(name: str, node: Json) -> str:
    """What Cloud TPU refuses although its description allows it."""
    for key in ("runtimeVersion", "acceleratorType"):
        if not node.get(key):
            return f"{key} is required"
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name):
        return "The id is not valid"
    labels = {**node.get("labels", {})}
    if not all(re.fullmatch(r"[-_a-z0-9]{0,63}", text) for text in (*labels, *labels.values())):
        return "A label is not valid"
    return ""


def _wrong_queued(body: Json) -> str:
    if "spot" in body and ("reservationName" in body or "guaranteed" in body):
        return "Only one tier may be chosen."
    if body.get("provisioningModel") == "FLEX_START":
        said = re.fullmatch(r"(\d+)s", body.get("runDuration", {}).get("maxRunDuration", ""))
        if not said or int(said[1]) > 7 * 86_400:
            return "A flex-start request needs a run duration of at most 7 days."
    return ""


def _missing(request: web.Request) -> web.Response:
    return _error(Fault("NOT_FOUND", f"Resource '{request.path.lstrip('/')}' was not found"))


def _status(fault: Fault) -> Json:
    said: Json = {"code": _STATUS[fault.name][0], "message": fault.sentence}
    return {**said, "details": list(fault.details)} if fault.details else said


def _error(fault: Fault) -> web.Response:
    status = _STATUS[fault.name][1]
    body = {"error": {**_status(fault), "code": status, "status": fault.name}}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
