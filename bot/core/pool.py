"""What a host of the pool says of itself, and when its devices are not to be trusted any more."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_FAULTS = 2
# what frameworks call the devices of a vendor
KINDS = {"nvidia": "cuda", "amd": "rocm", "intel": "xpu", "google": "tpu"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator of a host. `trouble` is empty while it is well."""

    vendor: str
    name: str
    memory_mb: int = 0
    driver: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An order that a host holds: running or stopped, with its code, and the end of the agent's log."""

    order: str
    state: str
    code: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What a host says each time that it asks."""

    labels: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    isolates: bool = False
    holds: tuple[Held, ...] = ()


def told(devices: Sequence[Device]) -> str:
    """Such as "2 x Intel Max 1100"."""
    counts = Counter(device.name for device in devices)
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items()) or "no accelerator"


def kinds_of(devices: Sequence[Device]) -> Mapping[str, int]:
    """How many there are of cuda, rocm, xpu and tpu."""
    return Counter(KINDS[device.vendor] for device in devices if device.vendor in KINDS)


def trouble_of(devices: Sequence[Device], most: int) -> str:
    """Why a host's devices cannot be used now; `most` is how many it has shown before. Empty when they can."""
    for device in devices:
        if device.trouble:
            return f"{device.name}: {device.trouble}"
    if len(devices) < most:
        return f"{len(devices)} of {most} devices are there"
    return ""


def quarantine_for(faults: int, trouble: str) -> str:
    """Why a host is not to be used until somebody has looked at it; empty while it may be."""
    return f"{faults} device faults, the last one: {trouble}" if faults >= MOST_FAULTS else ""


def after_report(state: str, order: str, holds: Sequence[Held]) -> tuple[str, str, str]:
    """State, code and words of a host that holds (or shall hold) `order`, after it has said what it holds."""
    mine = next((held for held in holds if held.order == order), None)
    if state == "free":
        return "free", "", ""
    if mine is not None:
        return ("leaving" if state == "leaving" else mine.state), mine.code, mine.said
    if state in ("given", "sent"):
        return "sent", "", ""
    if state == "leaving":
        return "free", "", ""
    return "stopped", "agent_lost", "The host does not know of the order any more."
