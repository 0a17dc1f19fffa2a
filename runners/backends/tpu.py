"""TPU machines of Google Cloud: nodes and queued resources of the Cloud TPU API, over REST with google-auth.

A machine is a node. Spot, reserved and flex-start nodes, and standard ones that are `queued`, are ordered by a queued
resource of the same name, and a machine is absent only when both are gone. Late refusals are found in the queued
resource, or in the zone's operations. A node has no limit of its own: besides its lease only the reaper ends it.

A slice is one node of several hosts. Each host is a machine of the bot, whose name ends in its number; the order of the
first one brings them all and its deletion takes them all, the others are only looked at.

Options of `[backends.tpu]`: `project`; `service_account` (required: an account without roles for the machines);
`credentials_file` (a service account's key; without it the environment's own credentials); `network`, `subnetwork`,
`external_ip` (true), `runtime_version` (by generation), `endpoint` (another address of the API).
Options of `[hardware.NAME]`: the same, and `zones` (in order of preference); `tpu` (a name of TPUS) with `count` chips,
or `accelerator_type`; `provisioning` (standard, spot, reserved or flex-start, in order of preference); `queued` (true:
standard orders stand in the queue, too); `reservation` (the name of one).
"""

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runners.backends.base import Backend, BackendError, BackendSettings, Finding, finding_of
from runners.checks import tpu as checks
from runners.google import CloudAwayError, GoogleApi, Refused
from runners.prices import list_price
from runners.protocol import PREFIX
from runners.spec import MachineOrder, Offer, Sighting, host_number, order_name
from runners.tpus import Shape, shape_of
from templates import load

_DEADLINE_GRACE_S = 900
_CODE_UID = 61200
_PROVISIONING = ("standard", "spot", "reserved", "flex-start")
_FLEX_START_LONGEST_S = 7 * 86_400

_STARTING = ("CREATING", "STARTING", "RESTARTING", "REIMAGING", "REPAIRING", "UNKNOWN", "STATE_UNSPECIFIED")
_WAITING = ("CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "STATE_UNSPECIFIED")
_TAKEN_BACK = ("SUSPENDING", "SUSPENDED")
# how the chips of one host lie
_BOUNDS = {1: "1,1,1", 4: "2,2,1", 8: "2,4,1"}


class TpuBackend(Backend):
    """Nodes of one project."""

    name = "tpu"

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings)
        options = settings.options
        self._api = GoogleApi(
            "Cloud TPU",
            "tpu.googleapis.com",
            credentials_file=options.get("credentials_file", ""),
            endpoint=options.get("endpoint", ""),
        )

    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        """Every zone with the first kind of provisioning, then every zone with the second."""
        merged = {**self.settings.options, **options}
        shape = shape_of(merged)
        generation = shape.accelerator_type.rpartition("-")[0]
        if str(shape.hosts) != merged.get("hosts", "1"):
            raise BackendError("config", f"{shape.accelerator_type} has {shape.hosts} hosts: set `hosts` to that.")
        _account(merged)
        kinds = _words(merged.get("provisioning", "standard"))
        for kind in kinds:
            if kind not in _PROVISIONING:
                raise BackendError("config", f"provisioning is {', '.join(_PROVISIONING)}, not {kind}.")
        return tuple(
            Offer(
                backend=self.name,
                zone=zone,
                machine_type=shape.accelerator_type,
                price_usd_per_hour=list_price(self.name, {generation: shape.chips}, kind, zone),
                provisioning=kind,
                scopes=(self._project(), zone.rpartition("-")[0], zone),
                queued=_is_queued(kind, merged),
                device="tpu",
                devices=max(1, shape.chips),
                one_order=shape.hosts > 1,
            )
            for kind in kinds
            for zone in _words(merged.get("zones", ""))
        )

    async def create(self, order: MachineOrder) -> None:
        """Order the node, or the queued resource that brings it; a name that exists is this very order."""
        if order.member:
            return
        merged = {**self.settings.options, **order.options}
        zone, node, name = order.offer.zone, _node(order, merged), order_name(order.name)
        version, kind, query, body = "v2", "nodes", {"nodeId": name}, node
        if _is_queued(order.offer.provisioning, merged):
            asked = str(uuid.uuid5(uuid.NAMESPACE_URL, f"benchbot:{order.name}:{order.attempt}"))
            kind, query = "queuedResources", {"queuedResourceId": name, "requestId": asked}
            place = f"projects/{self._project()}/locations/{zone}"
            body = _queued_resource(order, merged, node, place, self.settings.clock())
            # only the preview of the API knows how long a machine may run
            version = "v2alpha1" if order.offer.provisioning == "flex-start" else "v2"
        try:
            await self._api.call("POST", self._path(zone, kind, version=version), query, body)
        except Refused as refused:
            if refused.name != "ALREADY_EXISTS":
                raise _told(refused, zone) from None

    async def observe(self, name: str, zone: str) -> Sighting:
        """The node and its queued resource, or what the zone's operations say of one that is not there."""
        node, queued = await self._both(order_name(name), zone)
        seen = _sighting(name, zone, node, queued)
        if queued or seen.state not in ("absent", "starting"):
            return seen
        ordered = await self._order_of(order_name(name), zone)
        if "error" in ordered:
            return _refused_late(replace(seen, state="stopped" if node else "absent"), ordered["error"])
        return replace(seen, state="starting") if ordered and not ordered.get("done") else seen

    async def delete(self, name: str, zone: str) -> None:
        """Delete the queued resource with its node, or the node that has none."""
        node = order_name(name)
        if host_number(name):
            return
        if not await self._delete(zone, "queuedResources", node, {"force": "true"}):
            await self._delete(zone, "nodes", node, {})

    async def list_owned(self) -> tuple[Sighting, ...]:
        """Nodes and queued resources by label, in every zone of the project, whether configured or not."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for kind in ("nodes", "queuedResources"):
            for one in await self._list("-", kind):
                _, _, _, zone, _, name = one["name"].split("/")
                labels = (one if kind == "nodes" else _node_of(one)).get("labels", {})
                if labels.get("benchbot") == self.settings.deployment:
                    found.setdefault((zone, name), {})[kind] = one
        seen = []
        for (zone, name), both in found.items():
            node, queued = both.get("nodes", {}), both.get("queuedResources", {})
            seen += [_sighting(machine, zone, node, queued) for machine in _machines(name, node or _node_of(queued))]
        return tuple(seen)

    async def diagnose(self, name: str, zone: str) -> str:
        """The stage that the start-up script has reached, and what the cloud says of the node's health."""
        words: list[str] = []
        try:
            node, queued = await self._both(order_name(name), zone)
            words += [f"queued resource: {_state(queued)}"] if queued else []
            words += [f"node: {node.get('state')}", f"health: {node.get('health', 'not known')}"] if node else []
            words += [node["healthDescription"]] if node.get("healthDescription") else []
            words += [f"{one.get('symptomType')}: {one.get('details', '')}" for one in node.get("symptoms", [])]
            path = self._path(zone, "nodes", f"{order_name(name)}:getGuestAttributes")
            asked = {"queryPath": "benchbot/", **_worker(name)}
            told = await self._api.call("POST", path, {}, asked)
            found = [item for one in told.get("guestAttributes", []) for item in one["queryValue"].get("items", [])]
            words += [f"{item['key']}: {item['value']}" for item in found]
        except (Refused, BackendError):
            words.append("no stage was reached")
        return "\n".join(words)

    async def check(self, hardware: Mapping[str, Mapping[str, str]]) -> tuple[Finding, ...]:
        """Also permissions, and whether each zone has the type and what it boots."""
        found, offers = await self.check_offers(hardware)
        runtimes = {name: shape_of({**self.settings.options, **hardware[name]}).runtime for name in offers}
        try:
            looked = await checks.look(self._api, self.settings.options, self._project(), offers, runtimes)
        except BackendError as error:
            return (*found, finding_of("project", error, "Change [backends.tpu] in benchbot.toml."))
        if any(finding.about == "project" and finding.level == "fault" for finding in looked):
            return (*found, *looked)
        return (*found, *looked, await self.check_machines())

    async def _both(self, name: str, zone: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The node and its queued resource."""
        return await asyncio.gather(self._find(zone, "nodes", name), self._find(zone, "queuedResources", name))

    async def _order_of(self, name: str, zone: str) -> dict[str, Any]:
        """The newest operation that creates the node; empty when there is none."""
        target = f"/locations/{zone}/nodes/{name}"
        mine = [
            one
            for one in await self._list(zone, "operations")
            if one.get("metadata", {}).get("target", "").endswith(target) and one["metadata"].get("verb") == "create"
        ]
        return max(mine, key=lambda one: str(one["metadata"].get("createTime", "")), default={})

    async def _find(self, zone: str, kind: str, name: str) -> dict[str, Any]:
        """Empty when it is not there."""
        try:
            return await self._api.call("GET", self._path(zone, kind, name), {})
        except Refused as refused:
            if refused.name == "NOT_FOUND":
                return {}
            raise refused.away() from None

    async def _list(self, zone: str, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query: dict[str, str] = {}
        while True:
            try:
                page = await self._api.call("GET", self._path(zone, kind), query)
            except Refused as refused:
                raise refused.away() from None
            found += page.get(kind, [])
            if not page.get("nextPageToken"):
                return found
            query = {"pageToken": page["nextPageToken"]}

    async def _delete(self, zone: str, kind: str, name: str, query: Mapping[str, str]) -> bool:
        """Whether there is something to delete."""
        try:
            await self._api.call("DELETE", self._path(zone, kind, name), query)
        except Refused as refused:
            if refused.name == "NOT_FOUND":
                return False
            # one that is just being made or deleted cannot be deleted now: the bot comes again
            if refused.name != "FAILED_PRECONDITION" and not refused.is_later:
                raise refused.away() from None
        return True

    def _project(self) -> str:
        project = self.settings.options.get("project", "")
        if not project:
            raise BackendError("config", "Set `project` in [backends.tpu].")
        return project

    def _path(self, zone: str, *words: str, version: str = "v2") -> str:
        return "/".join((version, "projects", self._project(), "locations", zone, *words))


def _told(refused: Refused, zone: str) -> BackendError | CloudAwayError:
    """A refused order in our words, with the scope that it is about."""
    said, exhausted = refused.sentence.lower(), refused.name == "RESOURCE_EXHAUSTED" and not refused.is_rate
    if refused.is_quota or (exhausted and "quota" in said):
        return BackendError("quota", refused.sentence, zone.rpartition("-")[0] if "in region" in said else zone)
    if "state preempted" in said:
        return BackendError("preempted", refused.sentence)
    if exhausted or "capacity" in said:
        return BackendError("no_capacity", refused.sentence)
    return refused.away()


def _node(order: MachineOrder, options: Mapping[str, str]) -> dict[str, Any]:
    """The node as the API wants it."""
    shape = shape_of(options)
    script = load("machines", "startup.sh").render(
        server_url=order.server_url,
        agent_path=f"{PREFIX}/agent.pyz",
        lease_id=order.lease_id,
        deadline_at=int(order.deadline_at),
        grace_s=_DEADLINE_GRACE_S,
        gpus=0,
        tpus=shape.chips,
        slice=shape.hosts > 1,
        environment=json.dumps(_environment(shape)),
        uid=_CODE_UID,
        member=order.member,
        trusted=order.trusted,
    )
    network = {key: options[key] for key in ("network", "subnetwork") if options.get(key)}
    return {
        "acceleratorType": shape.accelerator_type,
        "runtimeVersion": shape.runtime,
        "labels": {
            "benchbot": order.deployment,
            "benchbot-lease": order.lease_id,
            "benchbot-deadline": str(int(order.deadline_at)),
            "benchbot-hosts": str(shape.hosts),
        },
        "networkConfig": {**network, "enableExternalIps": options.get("external_ip", "true") == "true"},
        "serviceAccount": {"email": _account(options)},
        "metadata": {"startup-script": script, "benchbot-token": order.token, "enable-guest-attributes": "TRUE"},
        **({"schedulingConfig": {"reserved": True}} if order.offer.provisioning == "reserved" else {}),
    }


def _queued_resource(
    order: MachineOrder, options: Mapping[str, str], node: Mapping[str, Any], place: str, now: float
) -> dict[str, Any]:
    """What brings the node when its turn has come. An order that comes too late for its deadline ends by itself."""
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(order.deadline_at))
    body: dict[str, Any] = {
        "tpu": {"nodeSpec": [{"parent": place, "nodeId": order_name(order.name), "node": node}]},
        "queueingPolicy": {"validUntilTime": until},
    }
    kind = order.offer.provisioning
    if kind == "spot":
        body["spot"] = {}
    if kind == "reserved" and options.get("reservation"):
        body["reservationName"] = f"{place}/reservations/{options['reservation']}"
    if kind == "flex-start":
        lives_s = max(600, int(order.deadline_at - now) + _DEADLINE_GRACE_S)
        body["provisioningModel"] = "FLEX_START"
        body["runDuration"] = {"maxRunDuration": f"{min(lives_s, _FLEX_START_LONGEST_S)}s"}
    return body


def _account(options: Mapping[str, str]) -> str:
    """The account that the machines act as; the project's default one could do much, and code on them with it."""
    account = options.get("service_account", "")
    if not account or account.endswith("-compute@developer.gserviceaccount.com"):
        raise BackendError(
            "config",
            "Set `service_account` in [backends.tpu] to an account without roles: without it TPU machines act as the "
            "project's default account. `gcloud iam service-accounts create benchbot-machine` makes one; give it no "
            "role.",
        )
    return account


def _worker(machine: str) -> dict[str, list[str]]:
    """Which host of a slice is asked for its guest attributes."""
    number = host_number(machine)
    return {} if number is None else {"workerIds": [str(number)]}


def _machines(name: str, node: Mapping[str, Any]) -> list[str]:
    """The machines of a node, one for each of its hosts."""
    hosts = node.get("labels", {}).get("benchbot-hosts", "1")
    return [f"{name}-{host}" for host in range(int(hosts))] if hosts.isdigit() and hosts not in ("0", "1") else [name]


def _environment(shape: Shape) -> dict[str, str]:
    """What the TPU's library asks the metadata server for, which is closed to the code.

    In a slice the start-up script adds what differs from host to host.
    """
    known = {"TPU_SKIP_MDS_QUERY": "true", "TPU_ACCELERATOR_TYPE": shape.accelerator_type, "PJRT_DEVICE": "TPU"}
    if shape.hosts > 1:
        return known
    known |= {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_HOST_BOUNDS": "1,1,1"}
    return known | ({"TPU_CHIPS_PER_HOST_BOUNDS": _BOUNDS[shape.chips]} if shape.chips else {})


def _is_queued(provisioning: str, options: Mapping[str, str]) -> bool:
    return provisioning != "standard" or options.get("queued", "false").lower() == "true"


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _state(found: Mapping[str, Any]) -> str:
    """A queued resource's."""
    return str(found.get("state", {}).get("state", "STATE_UNSPECIFIED"))


def _node_of(queued: Mapping[str, Any]) -> dict[str, Any]:
    """The node that a queued resource was ordered to bring."""
    specs = queued.get("tpu", {}).get("nodeSpec", [])
    return dict(specs[0].get("node", {})) if specs else {}


def _sighting(name: str, zone: str, node: Mapping[str, Any], queued: Mapping[str, Any]) -> Sighting:
    labels = (node or _node_of(queued)).get("labels", {})
    deadline = labels.get("benchbot-deadline", "")
    seen = Sighting(
        name=name,
        state="absent",
        zone=zone,
        lease_id=labels.get("benchbot-lease", ""),
        deadline_at=float(deadline) if deadline.isdigit() else None,
    )
    place = _state(queued)
    if queued and place == "FAILED":
        return _refused_late(replace(seen, state="stopped"), queued["state"].get("failedData", {}).get("error", {}))
    if queued and place in _TAKEN_BACK:
        by_hand = queued["state"].get("stateInitiator") == "USER"
        return replace(seen, state="stopped", code="" if by_hand else "preempted")
    if node:
        state, spot = node.get("state", ""), "spot" in queued or node.get("schedulingConfig", {}).get("spot")
        if state == "READY":
            return replace(seen, state="running")
        if state in _STARTING:
            return replace(seen, state="starting")
        code = "preempted" if state == "PREEMPTED" or spot else ""
        return replace(seen, state="stopped", code=code, evidence=node.get("healthDescription", ""))
    if queued:
        waits = "waiting" if place in _WAITING else "starting" if place in ("PROVISIONING", "ACTIVE") else "stopped"
        return replace(seen, state=waits)
    return seen


def _refused_late(seen: Sighting, error: Mapping[str, Any]) -> Sighting:
    """The sighting with the reason that an operation or a queued resource ended with."""
    told = _told(Refused("Cloud TPU", error), seen.zone)
    code, scope = (told.code, told.scope) if isinstance(told, BackendError) else ("no_capacity", "")
    return replace(seen, code=code, scope=scope, evidence=str(error.get("message", "")))
