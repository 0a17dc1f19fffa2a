"""What the operator's words for TPUs mean on Cloud TPU. Pure: options in, names of Google's out."""

from collections.abc import Mapping
from dataclasses import dataclass

from runners.backends.base import BackendError


@dataclass(frozen=True, slots=True)
class Tpu:
    """A generation: what its types begin with, how many they count to a chip, chips on one host, what it boots."""

    prefix: str
    per_chip: int
    chips: tuple[int, ...]
    runtime: str


TPUS = {
    "v2": Tpu("v2", 2, (4,), "tpu-ubuntu2204-base"),
    "v3": Tpu("v3", 2, (4,), "tpu-ubuntu2204-base"),
    "v4": Tpu("v4", 2, (4,), "tpu-ubuntu2204-base"),
    "v5e": Tpu("v5litepod", 1, (1, 4, 8), "v2-alpha-tpuv5-lite"),
    "v5p": Tpu("v5p", 2, (4,), "v2-alpha-tpuv5"),
    "v6e": Tpu("v6e", 1, (1, 4, 8), "v2-alpha-tpuv6e"),
}


# in a slice of several hosts each has so many
_CHIPS_IN_SLICE = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """A type as Google calls it, its hosts, the chips on each of them (0: not known), and what they boot."""

    accelerator_type: str
    hosts: int
    chips: int
    runtime: str


def shape_of(options: Mapping[str, str]) -> Shape:
    """What the operator's options order. Raises BackendError."""
    wanted, runtime, count = options.get("accelerator_type", ""), options.get("runtime_version", ""), ""
    if wanted:
        prefix, _, count = wanted.rpartition("-")
        name = next((name for name, tpu in TPUS.items() if tpu.prefix == prefix), "")
        if not name and runtime:
            return Shape(wanted, 1, 0, runtime)
    else:
        name, count = options.get("tpu", ""), options.get("count", "1")
    if name not in TPUS:
        raise BackendError(
            "config",
            f"Set `tpu` to one of {', '.join(TPUS)} with `count`, or `accelerator_type`; for another generation set "
            "`accelerator_type` and `runtime_version`.",
        )
    tpu = TPUS[name]
    if not count.isdigit():
        raise BackendError("config", f"count is a whole number of chips, not {count}.")
    chips = int(count) // tpu.per_chip if wanted else int(count)
    named = f"{tpu.prefix}-{chips * tpu.per_chip}"
    if chips in tpu.chips:
        return Shape(named, 1, chips, runtime or tpu.runtime)
    if chips <= max(tpu.chips) or chips % _CHIPS_IN_SLICE:
        counts = ", ".join(str(each) for each in tpu.chips)
        raise BackendError(
            "config", f"{name} comes {counts} chips to a host, or more as a multiple of {_CHIPS_IN_SLICE}, not {chips}."
        )
    return Shape(named, chips // _CHIPS_IN_SLICE, _CHIPS_IN_SLICE, runtime or tpu.runtime)
