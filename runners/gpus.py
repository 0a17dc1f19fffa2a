"""What the operator's words for GPUs mean on Google Compute Engine. Pure: options in, names of Google's out."""

from collections.abc import Mapping
from dataclasses import dataclass

from runners.backends.base import BackendError


@dataclass(frozen=True, slots=True)
class Gpu:
    """How a GPU is had: machine types by count where it is part of them, else an accelerator to attach."""

    machine_types: Mapping[int, str]
    accelerator: str = ""


GPUS = {
    "t4": Gpu({1: "n1-standard-8", 2: "n1-standard-16", 4: "n1-standard-32"}, "nvidia-tesla-t4"),
    "v100": Gpu(
        {1: "n1-standard-8", 2: "n1-standard-16", 4: "n1-standard-32", 8: "n1-standard-64"}, "nvidia-tesla-v100"
    ),
    "l4": Gpu({1: "g2-standard-8", 2: "g2-standard-24", 4: "g2-standard-48", 8: "g2-standard-96"}),
    "a100": Gpu({count: f"a2-highgpu-{count}g" for count in (1, 2, 4, 8)}),
    "a100-80gb": Gpu({count: f"a2-ultragpu-{count}g" for count in (1, 2, 4, 8)}),
    "h100": Gpu({count: f"a3-highgpu-{count}g" for count in (1, 2, 4, 8)}),
    "h100-mega": Gpu({8: "a3-megagpu-8g"}),
    "h200": Gpu({8: "a3-ultragpu-8g"}),
    "b200": Gpu({8: "a4-highgpu-8g"}),
}
# families that take no persistent disk
HYPERDISK = ("a4-", "a4x-", "g4-", "a3-ultragpu-")


def shape_of(options: Mapping[str, str]) -> tuple[str, int]:
    """Machine type and number of GPUs. Raises BackendError."""
    count = options.get("count", "1" if "gpu" in options else "0")
    if not count.isdigit():
        raise BackendError("config", f"count is a whole number, not {count}.")
    if options.get("machine_type"):
        return options["machine_type"], int(count)
    gpu = GPUS.get(options.get("gpu", ""))
    if gpu is None:
        raise BackendError("config", f"Set `machine_type`, or `gpu` to one of {', '.join(GPUS)}.")
    if int(count) not in gpu.machine_types:
        counts = ", ".join(str(each) for each in gpu.machine_types)
        raise BackendError("config", f"{options['gpu']} comes {counts} to a machine, not {count}.")
    return gpu.machine_types[int(count)], int(count)


def accelerator_of(options: Mapping[str, str]) -> str:
    """What is attached to the machine type; empty where the GPUs are part of it."""
    gpu = GPUS.get(options.get("gpu", ""))
    return options.get("accelerator") or (gpu.accelerator if gpu else "")


def image_of(options: Mapping[str, str]) -> tuple[str, str]:
    """The project and the family of what machines boot."""
    return (
        options.get("image_project", "deeplearning-platform-release"),
        options.get("image_family", "common-cu129-ubuntu-2204-nvidia-580"),
    )
