"""Cloud TPU: nodes, and nodes that a queued resource brings."""

from typing import ClassVar

from tests.contracts.clouds import NAME, ByZone, Cloud, Refusal
from tests.harness.tpu import CloudTpu, Fault

ZONE = "us-central1-a"
QUOTA = ({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"subject": "project"}]},)
RATE = ({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"},)


def _refusal(fault: Fault, code: str, scope: str = "") -> Refusal:
    return Refusal(fault, code, scope, fault.sentence)


STOCK_OUT = _refusal(Fault("RESOURCE_EXHAUSTED", "There is no more capacity in the zone."), "no_capacity")


class Tpu(ByZone):
    """Ordered as a node, which has no limit of its own."""

    name = "tpu"
    options: ClassVar = {"tpu": "v5e", "count": "8", "zones": f"{ZONE}, us-west4-b"}
    zone = ZONE
    key = "tpu-key.json"
    ends_itself = False
    last_words = "stage: booted"
    early = late = (
        STOCK_OUT,
        _refusal(Fault("FAILED_PRECONDITION", "Insufficient reserved capacity."), "no_capacity"),
        _refusal(Fault("INVALID_ARGUMENT", "An update is not supported while in state PREEMPTED."), "preempted"),
        _refusal(
            Fault("RESOURCE_EXHAUSTED", "Quota limit V5E has been exceeded in region us-central1."),
            "quota",
            "us-central1",
        ),
        _refusal(Fault("RESOURCE_EXHAUSTED", "Limit 8 in zone us-central1-a.", QUOTA), "quota", ZONE),
        _refusal(Fault("PERMISSION_DENIED", "Permission 'tpu.nodes.create' denied"), "config"),
        _refusal(Fault("INVALID_ARGUMENT", "Runtime version is not valid."), "config"),
    )
    # a node that is being made cannot be deleted, and this one would be made for ever
    never_boot = Cloud.never_boot
    busy = (Fault("RESOURCE_EXHAUSTED", "Too fast.", RATE), Fault("UNAVAILABLE", "Not now."))

    def build(self) -> CloudTpu:
        return CloudTpu(self.clock)

    def made(self) -> int:
        return len(self.service.orders_taken)

    async def is_empty(self) -> bool:
        return not self.service.nodes and not self.service.queued

    def disown(self) -> None:
        self.service.nodes[ZONE, NAME].body["labels"]["benchbot"] = "other"


class QueuedTpu(Tpu):
    """Ordered by a queued resource."""

    name = "tpu-spot"
    options: ClassVar = {**Tpu.options, "provisioning": "spot"}
    never_boot = ByZone.never_boot
    late = (*Tpu.late, _refusal(Fault("INTERNAL", "Oh."), "no_capacity"))
