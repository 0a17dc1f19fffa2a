"""GPU machines of Google Compute Engine, through google-cloud-compute.

A machine is an instance whose name and request id follow from the lease, so that ordering it twice makes one. Late
refusals are found in the zone's operations. It deletes itself at its deadline, whatever happens to the bot, and has no
service account.

Options of `[backends.gce]`: `project`; `credentials_file` (a service account's key; without it the environment's own
credentials); `network`, `subnetwork`, `external_ip` (true), `image_project`, `image_family`, `disk_gb` (100),
`disk_type` (pd-balanced), `service_account` (none), `endpoint` (another address of the API).
Options of `[hardware.NAME]`: the same, and `zones` (in order of preference); `gpu` (a name of GPUS) with `count`, or
`machine_type` with `accelerator` and `count` where GPUs are attached to it; `provisioning` (standard, spot or
flex-start, in order of preference).
"""

import asyncio
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runners.backends.base import Backend, BackendError, BackendSettings, Finding, finding_of
from runners.checks import gce as checks
from runners.compute import ComputeApi, Refused
from runners.gpus import HYPERDISK, accelerator_of, image_of, shape_of
from runners.prices import list_price
from runners.protocol import PREFIX
from runners.spec import MachineOrder, Offer, Sighting
from templates import load

_DEADLINE_GRACE_S = 900
_CODE_UID = 61200
_IMAGE_KEPT_S = 600.0
_LAST_WORDS = 4000
_PROVISIONING = {"standard": "STANDARD", "spot": "SPOT", "flex-start": "FLEX_START"}

_STARTING = ("PROVISIONING", "STAGING", "REPAIRING")
_WAITING = ("PENDING",)


class GceBackend(Backend):
    """Instances of one project."""

    name = "gce"

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings)
        self._api = ComputeApi(settings.options)
        self._images: dict[tuple[str, str], tuple[float, str]] = {}

    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        """Every zone with the first kind of provisioning, then every zone with the second."""
        merged = {**self.settings.options, **options}
        machine_type, gpus = shape_of(merged)
        accelerator = accelerator_of(merged)
        parts = {machine_type: 1, **({accelerator: gpus} if accelerator else {})}
        zones, kinds = _words(merged.get("zones", "")), _words(merged.get("provisioning", "standard"))
        for kind in kinds:
            if kind not in _PROVISIONING:
                raise BackendError("config", f"provisioning is {', '.join(_PROVISIONING)}, not {kind}.")
        return tuple(
            Offer(
                backend=self.name,
                zone=zone,
                machine_type=machine_type,
                price_usd_per_hour=list_price(self.name, parts, kind, zone),
                provisioning=kind,
                scopes=(self._project(), zone.rpartition("-")[0], zone),
                device="cuda" if gpus else "",
                devices=gpus,
            )
            for kind in kinds
            for zone in zones
        )

    async def create(self, order: MachineOrder) -> None:
        """Insert the instance; the same request id makes the same operation."""
        merged = {**self.settings.options, **order.options}
        image = await self._image(merged)
        body = _instance(order, merged, image, self.settings.clock())
        request = {
            "project": self._project(),
            "zone": order.offer.zone,
            "instance_resource": body,
            "request_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"benchbot:{order.name}:{order.attempt}")),
        }
        try:
            await self._api.call("Instances", "insert_unary", request)
        except Refused as refused:
            if refused.status != 409:
                raise refused.told(order.offer.zone, self._project()) from None

    async def observe(self, name: str, zone: str) -> Sighting:
        """The instance, or what its zone's operations say of one that is not there."""
        try:
            found = await self._api.call(
                "Instances", "get", {"project": self._project(), "zone": zone, "instance": name}
            )
        except Refused as refused:
            if refused.status != 404:
                raise refused.away() from None
            seen = await self._absent(name, zone)
            left = seen.state == "absent" and await self._has_disk(name, zone)
            return replace(seen, state="stopped") if left else seen
        return _sighting(found, zone)

    async def delete(self, name: str, zone: str) -> None:
        """Delete the instance with its disk, or the disk that an instance which never came has left."""
        if not await self._delete("Instances", zone, instance=name):
            await self._delete("Disks", zone, disk=name)

    async def list_owned(self) -> tuple[Sighting, ...]:
        """By label, in every zone of the project, whether configured or not."""
        wanted = {"project": self._project(), "filter": f"labels.benchbot={self.settings.deployment}"}
        try:
            instances, disks = await asyncio.gather(
                *(self._api.call(service, "aggregated_list", wanted, read=list) for service in ("Instances", "Disks"))
            )
        except Refused as refused:
            raise refused.away() from None
        seen = {
            (key, found.name): _sighting(found, key.rpartition("/")[2])
            for key, scoped in instances
            for found in scoped.instances
        }
        for key, scoped in disks:
            for disk in scoped.disks:
                seen.setdefault((key, disk.name), _left(disk, key.rpartition("/")[2]))
        return tuple(seen.values())

    async def diagnose(self, name: str, zone: str) -> str:
        """The stage that the start-up script has reached, and the end of the serial console."""
        where = {"project": self._project(), "zone": zone, "instance": name}
        words = []
        try:
            told = await self._api.call("Instances", "get_guest_attributes", {**where, "query_path": "benchbot/"})
            words += [f"{item.key}: {item.value}" for item in told.query_value.items]
        except Refused:
            words.append("no stage was reached")
        try:
            console = await self._api.call("Instances", "get_serial_port_output", {**where, "port": 1})
            words.append(console.contents[-_LAST_WORDS:])
        except Refused:
            words.append("no serial output")
        return "\n".join(words)

    async def check(self, hardware: Mapping[str, Mapping[str, str]]) -> tuple[Finding, ...]:
        """Also the project, its permissions and quotas, and what each machine is made of."""
        found, offers = await self.check_offers(hardware)
        asked = [checks.Asked(name, offers[name], {**self.settings.options, **hardware[name]}) for name in offers]
        try:
            looked = await checks.look(self.settings.options, self._project(), asked)
        except BackendError as error:
            return (*found, finding_of("project", error, "Change [backends.gce] in benchbot.toml."))
        if any(finding.about == "project" and finding.level == "fault" for finding in looked):
            return (*found, *looked)
        return (*found, *looked, await self.check_machines())

    async def _delete(self, service: str, zone: str, **named: str) -> bool:
        """Whether there was something to delete."""
        try:
            await self._api.call(service, "delete_unary", {"project": self._project(), "zone": zone, **named})
        except Refused as refused:
            if refused.status == 404:
                return False
            # one that is just being made or deleted cannot be deleted now: the bot comes again
            if not refused.is_busy:
                raise refused.away() from None
        return True

    async def _has_disk(self, name: str, zone: str) -> bool:
        """Whether the disk of an instance that is not there is there all the same."""
        try:
            await self._api.call("Disks", "get", {"project": self._project(), "zone": zone, "disk": name})
        except Refused as refused:
            if refused.status != 404:
                raise refused.away() from None
            return False
        return True

    async def _absent(self, name: str, zone: str) -> Sighting:
        """Late refusals come in the operation, while the instance is gone or was never there."""
        link = f"projects/{self._project()}/zones/{zone}/instances/{name}"
        request = {"project": self._project(), "zone": zone, "filter": f'targetLink eq ".*/{link}"'}
        try:
            operations = await self._api.call("ZoneOperations", "list", request, read=list)
        except Refused as refused:
            raise refused.away() from None
        mine = sorted((one for one in operations if one.target_link.endswith(link)), key=lambda one: one.insert_time)
        if any(one.operation_type == "insert" and not _done(one) for one in mine):
            return Sighting(name=name, state="starting", zone=zone)
        for one in reversed(mine):
            if one.operation_type == "compute.instances.preempted":
                return Sighting(name=name, state="absent", zone=zone, code="preempted")
            if one.operation_type == "insert" and one.error.errors:
                codes = tuple(str(error.code) for error in one.error.errors)
                said = " ".join(error.message for error in one.error.errors)
                told = Refused(0, codes, said).told(zone, self._project())
                code, scope = (told.code, told.scope) if isinstance(told, BackendError) else ("no_capacity", "")
                return Sighting(name=name, state="absent", zone=zone, code=code, evidence=said, scope=scope)
            if one.operation_type in ("insert", "delete"):
                break
        return Sighting(name=name, state="absent", zone=zone)

    async def _image(self, options: Mapping[str, str]) -> str:
        """The newest image of the family, by its own name: a family that rolls on must not go unnoticed."""
        place, family = image_of(options)
        kept_until, image = self._images.get((place, family), (0.0, ""))
        if time.monotonic() < kept_until:
            return image
        try:
            found = await self._api.call("Images", "get_from_family", {"project": place, "family": family})
        except Refused as refused:
            if refused.status == 404:
                raise BackendError("config", f"The project {place} has no image family {family}.") from None
            raise refused.told("", self._project()) from None
        image = f"projects/{place}/global/images/{found.name}"
        self._images[place, family] = (time.monotonic() + _IMAGE_KEPT_S, image)
        return image

    def _project(self) -> str:
        project = self.settings.options.get("project", "")
        if not project:
            raise BackendError("config", "Set `project` in [backends.gce].")
        return project


def _instance(order: MachineOrder, options: Mapping[str, str], image: str, now: float) -> dict[str, Any]:
    """The instance as the API wants it."""
    machine_type, gpus = shape_of(options)
    zone, accelerator = order.offer.zone, accelerator_of(options)
    attach = [{"accelerator_type": f"zones/{zone}/acceleratorTypes/{accelerator}", "accelerator_count": gpus}]
    hyperdisk = machine_type.startswith(HYPERDISK)
    disk_type = options.get("disk_type", "hyperdisk-balanced" if hyperdisk else "pd-balanced")
    lives_s = max(120, int(order.deadline_at - now) + _DEADLINE_GRACE_S)
    network: dict[str, Any] = {"network": options.get("network", "global/networks/default")}
    if options.get("subnetwork"):
        network = {"subnetwork": options["subnetwork"]}
    if options.get("external_ip", "true") == "true":
        network["access_configs"] = [{"name": "External NAT", "type_": "ONE_TO_ONE_NAT"}]
    script = load("machines", "startup.sh").render(
        server_url=order.server_url,
        agent_path=f"{PREFIX}/agent.pyz",
        lease_id=order.lease_id,
        deadline_at=int(order.deadline_at),
        grace_s=_DEADLINE_GRACE_S,
        gpus=gpus,
        tpus=0,
        slice=False,
        environment="",
        uid=_CODE_UID,
        member=order.member,
        trusted=order.trusted,
    )
    labels = {
        "benchbot": order.deployment,
        "benchbot-lease": order.lease_id,
        "benchbot-deadline": str(int(order.deadline_at)),
    }
    told = {"startup-script": script, "benchbot-token": order.token, "enable-guest-attributes": "TRUE"}
    account = options.get("service_account", "")
    return {
        "name": order.name,
        "machine_type": f"zones/{zone}/machineTypes/{machine_type}",
        "labels": labels,
        "disks": [
            {
                "boot": True,
                "auto_delete": True,
                "initialize_params": {
                    # an instance that is refused late may leave it behind
                    "disk_name": order.name,
                    "labels": labels,
                    "source_image": image,
                    "disk_size_gb": int(options.get("disk_gb", "100")),
                    "disk_type": f"zones/{zone}/diskTypes/{disk_type}",
                },
            }
        ],
        "network_interfaces": [network],
        "guest_accelerators": attach if accelerator else [],
        "service_accounts": [{"email": account, "scopes": []}] if account else [],
        "metadata": {"items": [{"key": key, "value": value} for key, value in told.items()]},
        "scheduling": {
            "provisioning_model": _PROVISIONING[order.offer.provisioning],
            "on_host_maintenance": "TERMINATE",
            # a machine that comes back would run the lease a second time
            "automatic_restart": False,
            "max_run_duration": {"seconds": lives_s},
            "instance_termination_action": "DELETE",
        },
    }


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


def _done(operation: Any) -> bool:
    return str(type(operation).Status(operation.status).name) == "DONE"


def _left(disk: Any, zone: str) -> Sighting:
    """A disk without its instance."""
    return Sighting(
        name=disk.name,
        state="stopped",
        zone=zone,
        lease_id=disk.labels.get("benchbot-lease", ""),
        deadline_at=_deadline(disk.labels),
        evidence="its disk is left",
    )


def _deadline(labels: Mapping[str, str]) -> float | None:
    text = labels.get("benchbot-deadline", "")
    return float(text) if text.isdigit() else None


def _sighting(found: Any, zone: str) -> Sighting:
    if found.status == "RUNNING":
        state = "running"
    elif found.status in _WAITING:
        state = "waiting"
    else:
        state = "starting" if found.status in _STARTING else "stopped"
    preempted = state == "stopped" and found.scheduling.provisioning_model == "SPOT"
    return Sighting(
        name=found.name,
        state=state,
        zone=zone,
        lease_id=found.labels.get("benchbot-lease", ""),
        deadline_at=_deadline(found.labels),
        evidence=found.status_message if state == "stopped" else "",
        code="preempted" if preempted else "",
    )
