"""What is known of a run without reading what its script wrote: the values of the built-in metrics."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bot.measure.metrics import BUILTINS, Builtin, Measurement
from bot.measure.weights import Weights

# what a run tells that has failed, too
OF_FAILED: tuple[Builtin, ...] = ("exit_status", "passed")
# once for all runs of a side on one lease
OF_A_SIDE: tuple[Builtin, ...] = ("checkout_seconds", "setup_seconds", "inputs_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """One run as its agent saw it; None is what it did not tell.

    `seconds` is the wall time of the training command; `checkout_s`, `setup_s` and `inputs_s` are what came before it,
    once for all runs of its side. `peak_device_bytes` is the most that one device held, and `device_trouble` says why
    that is not known. `exit_status` and `passed` stand only where the command itself came to an end.
    """

    seconds: float | None = None
    checkout_s: float | None = None
    setup_s: float | None = None
    inputs_s: float | None = None
    peak_rss_bytes: int | None = None
    peak_device_bytes: int | None = None
    device_trouble: str = ""
    exit_status: int | None = None
    passed: bool | None = None


UNTOLD = Outside()
"""A run of which nothing is known."""


def known(outside: Outside, weights: Weights | None = None) -> dict[str, float | str]:
    """By the names of BUILTINS and in their units: a value, or the reason why there is none."""
    no_weights = "no readable safetensors file of this run is kept"
    told: Mapping[Builtin, float | str | None] = {
        "wall_seconds": outside.seconds,
        "checkout_seconds": outside.checkout_s,
        "setup_seconds": outside.setup_s,
        "inputs_seconds": outside.inputs_s,
        "peak_host_memory": None if outside.peak_rss_bytes is None else outside.peak_rss_bytes / 1e6,
        "peak_device_memory": (
            outside.device_trouble or None if outside.peak_device_bytes is None else outside.peak_device_bytes / 1e6
        ),
        "weights_count": no_weights if weights is None else weights.numbers,
        "weights_size": no_weights if weights is None else weights.size / 1e6,
        "exit_status": outside.exit_status,
        "passed": outside.passed,
    }
    return {
        name: value if isinstance(value, str) else float(value) for name, value in told.items() if value is not None
    }


def built_in(name: Builtin, builtins: Mapping[str, float | str]) -> Measurement:
    """The value of a built-in metric among what `known` says, or why there is none."""
    value = builtins.get(name, "the agent did not tell it")
    if isinstance(value, str) or not math.isfinite(value):
        why = value if isinstance(value, str) else "what the agent told is no number"
        return Measurement(value=None, reason="no_points", sentence=f"{name} was not measured: {why}.")
    told = f"{BUILTINS[name].meaning}: {value:g} {BUILTINS[name].unit}"
    return Measurement(value=float(value), sentence=told.rstrip())
