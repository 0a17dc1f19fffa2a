"""What Cloud TPU has for the operator's hardware: permissions, and what each zone knows."""

from collections.abc import Mapping

from runners.backends.base import BackendError, Finding, finding_of
from runners.checks import google
from runners.google import CloudAwayError, GoogleApi, Refused
from runners.spec import Offer

ROLE = "roles/tpu.admin"
PERMISSIONS = ("tpu.nodes.create", "tpu.nodes.delete", "tpu.nodes.get", "tpu.nodes.list")
_KINDS = {"acceleratorTypes": "type", "runtimeVersions": "version"}
_WORDS = {"acceleratorTypes": "accelerator-types", "runtimeVersions": "versions"}


async def look(
    api: GoogleApi,
    options: Mapping[str, str],
    project: str,
    offers: Mapping[str, tuple[Offer, ...]],
    runtimes: Mapping[str, str],
) -> list[Finding]:
    """All findings; with a fault about "project" nothing else was looked at. `runtimes` are versions by hardware."""
    found = await google.project(options, project, PERMISSIONS, ROLE)
    if any(finding.about == "project" for finding in found):
        return found
    known: dict[str, dict[str, set[str]]] = {}
    for name, offered in offers.items():
        there, wanted = [], {"acceleratorTypes": offered[0].machine_type, "runtimeVersions": runtimes[name]}
        for zone in dict.fromkeys(offer.zone for offer in offered):
            try:
                if zone not in known:
                    known[zone] = {kind: await _names(api, project, zone, kind) for kind in _KINDS}
            except Refused as refused:
                if refused.is_off:
                    advice = f"gcloud services enable tpu.googleapis.com --project {project}"
                    return [*found, finding_of("project", refused.away(), advice)]
                advice = f"Set `zones` to some of: gcloud compute tpus locations list --project {project}"
                found.append(finding_of(f"zone {zone}", refused.away(), advice))
                continue
            except (BackendError, CloudAwayError) as error:
                return [*found, finding_of("project", error, google.advice(error))]
            missing = [kind for kind in _KINDS if wanted[kind] not in known[zone][kind]]
            found += [_lack(zone, kind, wanted[kind]) for kind in missing]
            there += [] if missing else [zone]
        if there:
            told = f"{wanted['acceleratorTypes']} with {wanted['runtimeVersions']} is known in {', '.join(there)}."
            found.append(Finding(about=f"zones of {name}", level="ok", sentence=told))
    return list(dict.fromkeys(found))


def _lack(zone: str, kind: str, name: str) -> Finding:
    advice = f"Choose from: gcloud compute tpus tpu-vm {_WORDS[kind]} list --zone {zone}"
    return Finding(
        about=f"zone {zone}", level="fault", sentence=f"It has no {_KINDS[kind]} {name} for us.", advice=advice
    )


async def _names(api: GoogleApi, project: str, zone: str, kind: str) -> set[str]:
    """Types or versions that a zone knows. Raises Refused."""
    found: set[str] = set()
    query: dict[str, str] = {}
    while True:
        page = await api.call("GET", f"v2/projects/{project}/locations/{zone}/{kind}", query)
        found |= {str(one.get(_KINDS[kind], "")) for one in page.get(kind, [])}
        if not page.get("nextPageToken"):
            return found
        query = {"pageToken": page["nextPageToken"]}
