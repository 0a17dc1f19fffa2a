"""Spot instances of Compute Engine."""

from typing import ClassVar

from tests.contracts.clouds import NAME, ByZone, Refusal
from tests.harness.gce import PROJECT, ComputeEngine

ZONE = "us-central1-a"
GONE = "It is not to be had."


def _refusal(status: int, reason: str, said: str, code: str, scope: str = "") -> Refusal:
    return Refusal((status, reason, said), code, scope, said)


class Gce(ByZone):
    """With two zones."""

    name = "gce"
    options: ClassVar = {"gpu": "a100", "zones": f"{ZONE}, us-east1-b", "provisioning": "spot"}
    zone = ZONE
    key = "gce-key.json"
    ends_itself = True
    last_words = "stage: booted"
    early = (
        _refusal(503, "", "The zone does not have enough resources available", "no_capacity"),
        _refusal(403, "quotaExceeded", "Quota 'GPUS' exceeded in region us-central1.", "quota", "us-central1"),
        _refusal(403, "quotaExceeded", "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.", "quota", PROJECT),
        _refusal(403, "forbidden", "Required 'compute.instances.create' permission", "config"),
        _refusal(400, "invalid", "The resource 'subnetworks/x' is invalid", "config"),
    )
    late = (
        Refusal(("ZONE_RESOURCE_POOL_EXHAUSTED", GONE), "no_capacity", "", GONE),
        Refusal(("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", GONE), "no_capacity", "", GONE),
        Refusal(("QUOTA_EXCEEDED", GONE), "quota", "us-central1", GONE),
        Refusal(("UNSUPPORTED_OPERATION", GONE), "no_capacity", "", GONE),
        Refusal(("PERMISSIONS_ERROR", GONE), "config", "", GONE),
    )
    busy = ((403, "rateLimitExceeded", "Rate Limit Exceeded"),)

    def build(self) -> ComputeEngine:
        return ComputeEngine(self.clock)

    def made(self) -> int:
        return len(self.service.inserts)

    async def is_empty(self) -> bool:
        return not self.service.instances and not self.service.disks

    def disown(self) -> None:
        for thing in (self.service.instances[ZONE, NAME].body, self.service.disks[ZONE, NAME]):
            thing["labels"]["benchbot"] = "other"
