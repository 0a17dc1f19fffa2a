"""What the name and the unit of a metric give away about it. Nothing is guessed that is not certain."""

import re
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Literal

_TIME_UNITS = {"s", "sec", "seconds", "ms", "us", "µs", "ns", "min", "minutes", "h", "hours", "s/step", "ms/step"}
_MEMORY_UNITS = {"b", "bytes", "kb", "kib", "mb", "mib", "gb", "gib"}
# with a small s: FLOPS and TFLOPS are as often meant to be a second's
_COUNT_UNITS = {f"{prefix}{noun}" for prefix in ("", "k", "M", "G", "T", "P") for noun in ("FLOPs", "MACs")}
_RATE_UNIT = re.compile(r"[a-z]+/(s|sec|second)", re.IGNORECASE)

_ERRORS = {"error", "errors", "err", "wer", "cer", "mae", "mse", "rmse", "nll", "perplexity", "ppl", "loss", "losses"}
_ACCURACIES = {"acc", "accuracy", "top1", "top5", "miou", "iou", "f1", "auc", "auroc", "dice"}
_LATENCIES = {"latency"}
# times of these are latencies: of one call, not of the work as a whole
_INFERENCES = {"inference", "infer"}
# `step_time_ms`, `seconds_per_step`, `time_to_accuracy`; but not `ms_ssim` or `time_steps`
_TIME = re.compile(
    r"(^|_)(time|times|runtime|walltime|duration|seconds|secs|sec|ms|milliseconds)"
    r"($|_(per|to|s|total|mean|median|p50|p90|p95|p99)($|_))"
)
_RATES = {"throughput", "fps", "qps"}
_MEMORIES = {"memory", "mem", "rss", "vram", "mb", "mib", "gb", "gib"}
_COUNTS = {"flops", "gflops", "macs", "gmacs", "params", "parameters"}


def guess_kind(name: str, unit: str) -> Literal["accuracy", "loss", "time", "memory", "latency", "count", "other"]:
    """The kind of a metric; `other` when neither unit nor name says."""
    words = _words(name)
    if unit == "pp":
        return "accuracy"
    if words & _LATENCIES:
        return "latency"
    if is_rate(name, unit):
        return "time"
    if unit in _COUNT_UNITS:
        return "count"
    if unit.lower() in _TIME_UNITS:
        return "latency" if words & _INFERENCES else "time"
    if unit.lower() in _MEMORY_UNITS:
        return "memory"
    if _TIME.search("_".join(_list(name))):
        return "latency" if words & _INFERENCES else "time"
    if words & _ERRORS:
        return "loss"
    if words & _ACCURACIES or "mAP" in re.split(r"[^A-Za-z]+", name):
        return "accuracy"
    if words & _MEMORIES:
        return "memory"
    return "count" if words & _COUNTS else "other"


def guess_lower_or_higher(name: str, unit: str, kind: str) -> Literal["higher", "lower"] | None:
    """Which direction is better, None unless certain."""
    words = _words(name)
    if kind == "count":
        return "lower" if words & _COUNTS or unit in _COUNT_UNITS else None
    if kind == "accuracy":
        # an error in percent points is of this kind too
        return "lower" if words & _ERRORS else "higher"
    if kind == "time" and is_rate(name, unit):
        return "higher"
    return "lower" if kind in ("loss", "time", "memory", "latency") else None


def is_rate(name: str, unit: str) -> bool:
    """Whether it is work per time, as `images_per_sec`, and not time per work."""
    per_time = re.search(r"per_(s|sec|secs|second|seconds|minute|hour)$|per_(s|sec|second)_", "_".join(_list(name)))
    return bool(per_time) or bool(_words(name) & _RATES) or bool(_RATE_UNIT.fullmatch(unit))


def _words(name: str) -> AbstractSet[str]:
    words = _list(name)
    return {*words, *(first + second for first, second in pairwise(words))}


def _list(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word]
