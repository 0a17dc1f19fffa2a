"""A Compute Engine on loopback: instances, zone operations and images, with the faults that a story asks for.

What it answers is checked against Google's discovery document; how it behaves in time is our reading of Google's
documentation.
"""

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from runners.backends.base import BackendSettings
from runners.backends.gce import GceBackend
from runners.gpus import GPUS
from runners.spec import MachineOrder, Offer
from tests.harness.discovery import description
from tests.harness.google import PROJECT, GoogleService, Json

IMAGE = "common-cu129-ubuntu-2204-nvidia-580-v20261101"
_BASE = f"/compute/v1/projects/{PROJECT}"
ZONES = ("us-central1-a", "us-east1-b")
_QUOTAS = ("NVIDIA_A100_GPUS", "PREEMPTIBLE_NVIDIA_A100_GPUS", "NVIDIA_T4_GPUS", "NVIDIA_L4_GPUS")
_STATES = ("PROVISIONING", "STAGING", "RUNNING", "STOPPING", "TERMINATED")


@dataclass
class Faults:
    """What goes wrong, by zone; a pair is a code and a sentence."""

    early: dict[str, tuple[int, str, str]] = field(default_factory=dict)  # status, reason, sentence
    late: dict[str, tuple[str, str]] = field(default_factory=dict)
    late_s: float = 5.0
    # a late refusal leaves the disk that had been made already
    leaves_disk: bool = False
    lost_replies: int = 0
    failing_deletes: int = 0
    never_boots: bool = False


@dataclass
class Instance:
    """One instance, and when it comes to life."""

    body: Json
    zone: str
    created_at: float
    state: str = "PROVISIONING"
    gone_at: float | None = None


class ComputeEngine(GoogleService):
    """The API of one project. `clock` is the world's; instances boot `boot_s` after their order."""

    def __init__(self, clock: Callable[[], float], *, boot_s: float = 0.0, delete_s: float = 0.0) -> None:
        super().__init__(clock, description("compute.v1"), "compute.googleapis.com")
        self.boot_s, self.delete_s = boot_s, delete_s
        self.faults = Faults()
        self.instances: dict[tuple[str, str], Instance] = {}
        self.disks: dict[tuple[str, str], Json] = {}
        self.operations: list[Json] = []
        self.inserts: list[tuple[str, str]] = []
        self.console: dict[str, str] = {}
        # limit and usage by metric, in every region; what a zone does not have: a machine type, an accelerator
        self.quotas: dict[str, tuple[float, float]] = {"GPUS_ALL_REGIONS": (8, 0), **dict.fromkeys(_QUOTAS, (8, 0))}
        self.without: set[tuple[str, str]] = set()
        self.compute_off = False
        self._numbers = iter(range(1, 1_000_000))

    def routes(self, app: web.Application) -> None:
        """What is answered."""
        zone = _BASE + "/zones/{zone}"
        app.router.add_post(f"{zone}/instances", self._insert)
        app.router.add_get(f"{zone}/instances/{{name}}", self._get)
        app.router.add_delete(f"{zone}/instances/{{name}}", self._delete)
        app.router.add_get(f"{zone}/instances/{{name}}/getGuestAttributes", self._guest)
        app.router.add_get(f"{zone}/instances/{{name}}/serialPort", self._serial)
        app.router.add_get(f"{zone}/disks/{{name}}", self._get_disk)
        app.router.add_delete(f"{zone}/disks/{{name}}", self._delete_disk)
        app.router.add_get(f"{_BASE}/aggregated/disks", self._aggregated)
        app.router.add_get(f"{zone}/operations", self._operations)
        app.router.add_get(f"{_BASE}/aggregated/instances", self._aggregated)
        app.router.add_get("/compute/v1/projects/{project}/global/images/family/{family}", self._image)
        app.router.add_get("/compute/v1/projects/{project}", self._project)
        app.router.add_get(f"{_BASE}/regions/{{region}}", self._region)
        app.router.add_get(zone, self._zone)
        app.router.add_get(f"{zone}/{{kind:machineTypes|acceleratorTypes}}/{{name}}", self._type)
        app.router.add_get("/compute/v1/projects/{project}/global/networks/{name}", self._network)
        app.router.add_get("/compute/v1/projects/{project}/regions/{region}/subnetworks/{name}", self._network)

    def refusal(self) -> web.Response:
        """For a call that nobody signed."""
        return _error(401, "authError", "Request had invalid authentication credentials.")

    # ---- for stories ------------------------------------------------------------------------------------------------

    def backend(self, folder: Path, **options: str) -> GceBackend:
        """Our backend before this cloud, with a key that it accepts."""
        key = folder / "gce-key.json"
        key.write_text(json.dumps(self.credentials()))
        chosen = {"project": PROJECT, "endpoint": self.url, "credentials_file": str(key), **options}
        return GceBackend(BackendSettings(deployment="main", folder=folder, clock=self.clock, options=chosen))

    def orders(self, server_url: str) -> dict[str, MachineOrder]:
        """What each running instance knows, from its own metadata."""
        self.move()
        found = {}
        for (zone, name), instance in self.instances.items():
            if instance.state != "RUNNING":
                continue
            metadata = {item["key"]: item["value"] for item in instance.body["metadata"]["items"]}
            said = re.search(r"--server (\S+) --lease (\S+)", metadata["startup-script"])
            assert said
            assert said[1] == server_url
            found[name] = MachineOrder(
                name=name,
                deployment=instance.body["labels"]["benchbot"],
                lease_id=said[2],
                server_url=said[1],
                token=metadata["benchbot-token"],
                deadline_at=0.0,
                offer=Offer(backend="gce", zone=zone),
            )
        return found

    # ---- instances --------------------------------------------------------------------------------------------------

    async def _insert(self, request: web.Request) -> web.Response:
        zone, body = request.match_info["zone"], await request.json()
        asked = request.query.get("requestId", "")
        for operation in self.operations:
            if asked and operation.get("clientOperationId") == asked:
                return web.json_response(operation)
        wrong = _wrong(body)
        if wrong:
            return _error(400, "invalid", wrong)
        if zone in self.faults.early:
            return _error(*self.faults.early[zone])
        name = body["name"]
        if (zone, name) in self.instances:
            return _error(409, "alreadyExists", f"The resource '{name}' already exists")
        self.inserts.append((zone, name))
        operation = self._operation("insert", zone, name, asked)
        self.instances[zone, name] = Instance(body, zone, self.clock())
        made = body["disks"][0]["initializeParams"]
        self.disks[zone, made["diskName"]] = {"name": made["diskName"], "labels": made["labels"]}
        if zone in self.faults.late:
            operation |= {"status": "RUNNING", "progress": 0}
        if self.faults.lost_replies > 0:
            self.faults.lost_replies -= 1
            assert request.transport
            request.transport.close()
        return web.json_response(operation)

    def move(self) -> None:
        """What has happened by itself since the last call."""
        now = self.clock()
        for key, instance in list(self.instances.items()):
            zone, name = key
            fault = self.faults.late.get(zone)
            age_s = now - instance.created_at
            if fault is not None:
                if age_s >= self.faults.late_s:
                    code, said = fault
                    for operation in self.operations:
                        if operation["targetLink"].endswith(f"/{zone}/instances/{name}"):
                            operation |= {"status": "DONE", "progress": 100}
                            operation["error"] = {"errors": [{"code": code, "message": said}]}
                    self._gone(key, with_disk=not self.faults.leaves_disk)
                continue
            if instance.state == "PROVISIONING" and age_s >= self.boot_s and not self.faults.never_boots:
                instance.state = "RUNNING"
            limit_s = int(instance.body["scheduling"]["maxRunDuration"]["seconds"])
            if instance.state == "RUNNING" and age_s >= limit_s:
                instance.state, instance.gone_at = "STOPPING", now
            if instance.gone_at is not None and now >= instance.gone_at:
                self._gone(key)

    def _gone(self, key: tuple[str, str], *, with_disk: bool = True) -> None:
        del self.instances[key]
        if with_disk:
            del self.disks[key]

    def preempt(self, name: str) -> None:
        """Take a spot machine away: the instance stops and is deleted, and an operation tells it."""
        for zone, found in list(self.instances):
            if found == name:
                self._gone((zone, found))
                self._operation("compute.instances.preempted", zone, name, "")

    def power_off(self, name: str) -> None:
        """The instance shuts itself down."""
        for (_, found), instance in self.instances.items():
            if found == name and instance.state == "RUNNING":
                instance.state = "TERMINATED"

    async def _get(self, request: web.Request) -> web.Response:
        instance = self.instances.get((request.match_info["zone"], request.match_info["name"]))
        return web.json_response(_shown(instance)) if instance else _missing(request)

    async def _delete(self, request: web.Request) -> web.Response:
        zone, name = request.match_info["zone"], request.match_info["name"]
        instance = self.instances.get((zone, name))
        if instance is None:
            return _missing(request)
        if self.faults.failing_deletes > 0:
            self.faults.failing_deletes -= 1
            return _error(503, "backendError", "The service is currently unavailable.")
        if zone in self.faults.late or instance.state == "STOPPING":
            return _error(400, "resourceNotReady", f"The resource '{name}' is not ready")
        instance.state, instance.gone_at = "STOPPING", self.clock() + self.delete_s
        return web.json_response(self._operation("delete", zone, name, ""))

    async def _get_disk(self, request: web.Request) -> web.Response:
        disk = self.disks.get((request.match_info["zone"], request.match_info["name"]))
        return web.json_response({"kind": "compute#disk", **disk}) if disk else _missing(request)

    async def _delete_disk(self, request: web.Request) -> web.Response:
        zone, name = request.match_info["zone"], request.match_info["name"]
        if (zone, name) not in self.disks:
            return _missing(request)
        if (zone, name) in self.instances:
            said = f"The disk resource '{name}' is already being used by '{name}'"
            return _error(400, "resourceInUseByAnotherResource", said)
        del self.disks[zone, name]
        return web.json_response(self._operation("delete", zone, name, "", kind="disks"))

    async def _guest(self, request: web.Request) -> web.Response:
        if (request.match_info["zone"], request.match_info["name"]) not in self.instances:
            return _missing(request)
        items = [{"namespace": "benchbot", "key": "stage", "value": "booted"}]
        return web.json_response({"kind": "compute#guestAttributes", "queryValue": {"items": items}})

    async def _serial(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if (request.match_info["zone"], name) not in self.instances:
            return _missing(request)
        return web.json_response({"contents": self.console.get(name, "benchbot: booted\n"), "start": "0", "next": "17"})

    async def _operations(self, request: web.Request) -> web.Response:
        # as Compute Engine reads it: FIELD eq REGULAR-EXPRESSION
        found = re.fullmatch(r'targetLink eq "(.+)"', request.query["filter"])
        assert found, request.query["filter"]
        zone = request.match_info["zone"]
        mine = [
            one
            for one in self.operations
            if one["zone"].endswith(f"/{zone}") and re.fullmatch(found[1], one["targetLink"])
        ]
        return web.json_response({"kind": "compute#operationList", "items": mine})

    async def _aggregated(self, request: web.Request) -> web.Response:
        found = re.fullmatch(r"labels\.benchbot=([a-z0-9]+)", request.query["filter"])
        assert found, request.query["filter"]
        plural = request.path.rpartition("/")[2]
        shown = {key: _shown(instance) for key, instance in self.instances.items()}
        items: Json = {}
        for (zone, _), thing in (shown if plural == "instances" else self.disks).items():
            if thing["labels"]["benchbot"] == found[1]:
                items.setdefault(f"zones/{zone}", {plural: []})[plural].append(thing)
        return web.json_response({"kind": f"compute#{plural.rstrip('s')}AggregatedList", "items": items})

    async def _image(self, request: web.Request) -> web.Response:
        if request.match_info["family"] != "common-cu129-ubuntu-2204-nvidia-580":
            return _missing(request)
        return web.json_response({"kind": "compute#image", "name": IMAGE, "status": "READY"})

    # ---- what is there ----------------------------------------------------------------------------------------------

    async def _project(self, request: web.Request) -> web.Response:
        if self.compute_off:
            return _error(403, "accessNotConfigured", "Compute Engine API has not been used in this project before.")
        if request.match_info["project"] != PROJECT:
            return _missing(request)
        named = self._quotas(("GPUS_ALL_REGIONS",))
        return web.json_response({"kind": "compute#project", "name": PROJECT, "quotas": named})

    async def _region(self, request: web.Request) -> web.Response:
        metrics = [metric for metric in self.quotas if metric != "GPUS_ALL_REGIONS"]
        region = request.match_info["region"]
        return web.json_response({"kind": "compute#region", "name": region, "quotas": self._quotas(metrics)})

    def _quotas(self, metrics: Iterable[str]) -> list[Json]:
        known = {metric: self.quotas[metric] for metric in metrics if metric in self.quotas}
        return [{"metric": metric, "limit": limit, "usage": usage} for metric, (limit, usage) in known.items()]

    async def _zone(self, request: web.Request) -> web.Response:
        zone = request.match_info["zone"]
        if zone not in ZONES:
            return _missing(request)
        return web.json_response({"kind": "compute#zone", "name": zone, "status": "UP"})

    async def _type(self, request: web.Request) -> web.Response:
        """Every type that our own table knows, with the GPUs that are part of it."""
        zone, kind, name = (request.match_info[key] for key in ("zone", "kind", "name"))
        known = {machine_type for gpu in GPUS.values() for machine_type in gpu.machine_types.values()}
        known |= {gpu.accelerator for gpu in GPUS.values()}
        if zone not in ZONES or (zone, name) in self.without or name not in known:
            return _missing(request)
        if kind == "acceleratorTypes":
            return web.json_response({"kind": "compute#acceleratorType", "name": name})
        count = re.fullmatch(r"a2-highgpu-(\d)g", name)
        built_in = {"guestAcceleratorType": "nvidia-tesla-a100", "guestAcceleratorCount": int(count[1]) if count else 0}
        gpus = {"accelerators": [built_in]} if count else {}
        return web.json_response({"kind": "compute#machineType", "name": name, "zone": zone, **gpus})

    async def _network(self, request: web.Request) -> web.Response:
        name, region = request.match_info["name"], request.match_info.get("region")
        if (request.match_info["project"], name) != (PROJECT, "default"):
            return _missing(request)
        return web.json_response({"kind": f"compute#{'sub' if region else ''}network", "name": name})

    def _operation(self, verb: str, zone: str, name: str, asked: str, kind: str = "instances") -> Json:
        number = next(self._numbers)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.clock())) + f".{number % 1000:03d}+00:00"
        link = f"{self.url}{_BASE}/zones/{zone}"
        operation = {
            "kind": "compute#operation",
            "id": str(number),
            "name": f"operation-{number}",
            "operationType": verb,
            "targetLink": f"{link}/{kind}/{name}",
            "zone": link,
            "insertTime": stamp,
            "status": "DONE",
            "progress": 100,
            **({"clientOperationId": asked} if asked else {}),
        }
        self.operations.append(operation)
        return operation


def _shown(instance: Instance) -> Json:
    return {**instance.body, "kind": "compute#instance", "status": instance.state, "id": "1"}


def _wrong(body: Json) -> str:
    """What Compute Engine refuses although its description allows it."""
    for name in ("name", "machineType", "disks", "networkInterfaces"):
        if not body.get(name):
            return f"Invalid value for field 'resource.{name}'"
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", body["name"]):
        return "Invalid value for field 'resource.name'"
    labels = {**body.get("labels", {})}
    if not all(re.fullmatch(r"[-_a-z0-9]{0,63}", text) for text in (*labels, *labels.values())):
        return "Invalid value for field 'resource.labels'"
    scheduling, type_ = body.get("scheduling", {}), body["machineType"].rpartition("/")[2]
    gpus = body.get("guestAccelerators") or not type_.startswith("n1-")
    if gpus and scheduling.get("onHostMaintenance") != "TERMINATE":
        return "Instances with guest accelerators do not support live migration."
    if body.get("guestAccelerators") and not type_.startswith("n1-"):
        return f"[{type_}] features are not compatible for creating instance with guest accelerators."
    return ""


def _missing(request: web.Request) -> web.Response:
    return _error(404, "notFound", f"The resource '{request.path.removeprefix('/compute/v1/')}' was not found")


def _error(status: int, reason: str, sentence: str) -> web.Response:
    errors = [{"domain": "global", "reason": reason, "message": sentence}]
    body = {"error": {"code": status, "message": sentence, "errors": errors}}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
