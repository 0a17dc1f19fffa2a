"""What Google Compute Engine has for the operator's hardware: project, quotas, images, machine types, networks.

It asks the REST API, since what is looked at is small and a missing thing is an answer like another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runners.backends.base import BackendError, Finding, finding_of
from runners.checks import google
from runners.google import CloudAwayError, GoogleApi, Refused
from runners.gpus import accelerator_of, image_of
from runners.spec import Offer

ROLE = "roles/compute.instanceAdmin.v1"
PERMISSIONS = (
    "compute.disks.create",
    "compute.disks.delete",
    "compute.disks.get",
    "compute.disks.list",
    "compute.disks.setLabels",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.get",
    "compute.instances.getGuestAttributes",
    "compute.instances.getSerialPortOutput",
    "compute.instances.list",
    "compute.instances.setLabels",
    "compute.instances.setMetadata",
    "compute.zoneOperations.list",
)
# the quota of a region that counts a GPU; Google shows none for newer ones
_QUOTAS = {
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-tesla-v100": "NVIDIA_V100_GPUS",
    "nvidia-l4": "NVIDIA_L4_GPUS",
    "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One hardware of the operator: its offers, and its options with the backend's own below them."""

    name: str
    offers: tuple[Offer, ...]
    options: Mapping[str, str]


class _Project:
    """What is looked at, once, however many hardwares ask for it."""

    def __init__(self, api: GoogleApi, name: str) -> None:
        self._api, self.name = api, name
        self._known: dict[str, dict[str, Any] | None] = {}

    async def find(self, path: str, project: str = "") -> dict[str, Any] | None:
        """The thing at a path below the project (or another one); None when there is none. Raises Refused."""
        path = f"compute/v1/projects/{project or self.name}/{path}".rstrip("/")
        if path not in self._known:
            try:
                self._known[path] = await self._api.call("GET", path, {})
            except Refused as refused:
                # another project's things may be hidden from us, which comes to the same
                hidden = refused.code == 403 and project not in ("", self.name)
                if refused.code != 404 and not hidden:
                    raise
                self._known[path] = None
        return self._known[path]


async def look(options: Mapping[str, str], project: str, asked: Iterable[Asked]) -> list[Finding]:
    """All findings; a fault about "project" is the only one of its kind, and then nothing else was looked at."""
    found = await google.project(options, project, PERMISSIONS, ROLE)
    if any(finding.about == "project" for finding in found):
        return found
    api = GoogleApi(
        "Google Compute Engine",
        "compute.googleapis.com",
        credentials_file=options.get("credentials_file", ""),
        endpoint=options.get("endpoint", ""),
    )
    place = _Project(api, project)
    try:
        whole = await place.find("")
        if whole is None:
            advice = "Set `project` in [backends.gce] to the id that `gcloud projects list` shows."
            return [Finding(about="project", level="fault", sentence=f"There is no project {project}.", advice=advice)]
        found.append(Finding(about="project", level="ok", sentence=f"{project} can be read."))
        for one in asked:
            found += await _hardware(place, whole, one)
    except Refused as refused:
        advice = f"gcloud services enable compute.googleapis.com --project {project}" if refused.is_off else ""
        error = refused.away()
        found.append(finding_of("project", error, advice or f"Give the bot's account the role {ROLE} in {project}."))
    except (BackendError, CloudAwayError) as error:
        found.append(finding_of("project", error, google.advice(error)))
    # what two hardwares share is told once
    return list(dict.fromkeys(found))


async def _hardware(place: _Project, whole: Mapping[str, Any], asked: Asked) -> list[Finding]:
    zones = list(dict.fromkeys(offer.zone for offer in asked.offers))
    found = [await _image(place, *image_of(asked.options))]
    found += await _network(place, asked.options, zones)
    there, gpu, counted = [], accelerator_of(asked.options), None
    for zone in zones:
        missing = await _zone(place, zone, asked.offers[0].machine_type, accelerator_of(asked.options))
        if missing:
            found.append(missing)
            continue
        there.append(zone)
        machine_type = await place.find(f"zones/{zone}/machineTypes/{asked.offers[0].machine_type}") or {}
        for part in machine_type.get("accelerators", []):
            gpu, counted = part.get("guestAcceleratorType", ""), part.get("guestAcceleratorCount", 0)
    if there:
        told = f"{asked.offers[0].machine_type} is made in {', '.join(there)}."
        found.append(Finding(about=f"zones of {asked.name}", level="ok", sentence=told))
    count = asked.offers[0].devices
    if counted is not None and counted != count:
        told = f"{asked.offers[0].machine_type} has {counted} GPUs, and the configuration says {count}."
        advice = f"Set count = {counted} in [hardware.{asked.name}]."
        found.append(Finding(about=f"hardware {asked.name}", level="fault", sentence=told, advice=advice))
    elif count:
        found += await _quotas(place, whole, asked, gpu, there)
    return found


async def _image(place: _Project, project: str, family: str) -> Finding:
    about = f"image {family}"
    image = await place.find(f"global/images/family/{family}", project)
    if image is None:
        advice = f"Set `image_family` to one of: gcloud compute images list --project {project} --no-standard-images"
        told = f"The project {project} has no such image family, or does not show it to the bot's account."
        return Finding(about=about, level="fault", sentence=told, advice=advice)
    return Finding(about=about, level="ok", sentence=f"It is {image.get('name')} now.")


async def _network(place: _Project, options: Mapping[str, str], zones: list[str]) -> list[Finding]:
    """The subnetwork that is named, or else the network."""
    kind = "subnetwork" if options.get("subnetwork") else "network"
    text = options.get(kind, "global/networks/default")
    project, path = place.name, text
    if "projects/" in text:
        project, _, path = text.rpartition("projects/")[2].partition("/")
    if f"{kind}s/" not in path:
        shape = "regions/REGION/subnetworks/NAME" if kind == "subnetwork" else "global/networks/NAME"
        return [Finding(about=kind, level="fault", sentence=f"{text} is no path.", advice=f"Set `{kind}` to {shape}.")]
    if await place.find(path, project) is None:
        advice = f"Set `{kind}` to one of: gcloud compute networks {'subnets ' * (kind == 'subnetwork')}list"
        advice += f" --project {project}"
        return [Finding(about=kind, level="fault", sentence=f"There is no {path} in {project}.", advice=advice)]
    region = path.split("/")[1] if kind == "subnetwork" else ""
    outside = [zone for zone in zones if region and zone.rpartition("-")[0] != region]
    if outside:
        told = f"{path} is in {region}, and {', '.join(outside)} in no such region."
        advice = "Set `subnetwork` in each [hardware.NAME] beside `zones` of its own region."
        return [Finding(about=kind, level="fault", sentence=told, advice=advice)]
    return [Finding(about=kind, level="ok", sentence=f"{path} is there.")]


async def _zone(place: _Project, zone: str, machine_type: str, accelerator: str) -> Finding | None:
    """What is missing in a zone."""
    about, tell = f"zone {zone}", "gcloud compute"
    known = await place.find(f"zones/{zone}")
    if known is None:
        advice = f"Set `zones` to some of: {tell} zones list --project {place.name}"
        return Finding(about=about, level="fault", sentence="Google has no such zone.", advice=advice)
    for kind, name, words in (
        ("machineTypes", machine_type, "machine-types"),
        ("acceleratorTypes", accelerator, "accelerator-types"),
    ):
        if name and await place.find(f"zones/{zone}/{kind}/{name}") is None:
            advice = f"Set `zones` to some of: {tell} {words} list --filter=name={name} --format='value(zone)'"
            told = f"There is no {name} in this zone."
            return Finding(about=about, level="fault", sentence=told, advice=advice)
    if known.get("status") == "DOWN":
        return Finding(about=about, level="warning", sentence="Google says that it is down.", advice="Wait.")
    return None


async def _quotas(place: _Project, whole: Mapping[str, Any], asked: Asked, gpu: str, zones: list[str]) -> list[Finding]:
    """The project's quota of all GPUs, and each region's of this one."""
    count = asked.offers[0].devices
    found = _room("quota GPUS_ALL_REGIONS", _limits(whole), ("GPUS_ALL_REGIONS",), count, place.name)
    metric = _QUOTAS.get(gpu)
    if metric is None:
        told = f"Google lists no quota of {gpu or asked.offers[0].machine_type} here."
        advice = f"See that it is {count} or more: {_page(place.name)}"
        return [*found, Finding(about=f"quota of {asked.name}", level="ok", sentence=told, advice=advice)]
    standard = all(offer.provisioning == "standard" for offer in asked.offers)
    for region in dict.fromkeys(zone.rpartition("-")[0] for zone in zones):
        limits = _limits(await place.find(f"regions/{region}") or {})
        # without a quota of their own, spot machines are counted with the others
        metrics = (metric,) if standard else (f"PREEMPTIBLE_{metric}", metric)
        found += _room(f"quota {metrics[0]} of {region}", limits, metrics, count, place.name)
    return found


def _limits(thing: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Limit and usage of each quota."""
    return {one["metric"]: (one.get("limit", 0.0), one.get("usage", 0.0)) for one in thing.get("quotas", [])}


def _room(
    about: str, limits: Mapping[str, tuple[float, float]], metrics: tuple[str, ...], count: int, project: str
) -> list[Finding]:
    """Whether one of the quotas has room for a machine's GPUs."""
    known = [limits[metric] for metric in metrics if metric in limits]
    limit, usage = max(known, default=(0.0, 0.0))
    advice = f"Ask for {count} or more: {_page(project)}"
    if limit < count:
        told = f"It is {limit:.0f}, and a machine takes {count}."
        return [Finding(about=about, level="fault", sentence=told, advice=advice)]
    if limit - usage < count:
        told = f"{usage:.0f} of {limit:.0f} are in use, and a machine takes {count}: orders wait."
        return [Finding(about=about, level="warning", sentence=told, advice=advice)]
    return [Finding(about=about, level="ok", sentence=f"{usage:.0f} of {limit:.0f} are in use.")]


def _page(project: str) -> str:
    return f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
