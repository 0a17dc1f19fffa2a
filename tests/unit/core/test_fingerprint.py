"""What may be compared with what: a series ends where something changes that is no commit of the repository."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.core.fingerprint import Fingerprint, fingerprint_of, series_id
from bot.core.nouns import Benchmark, Hardware, Input, PlannedLease, RepoConfig, Variant
from bot.measure.metrics import Metric

BENCHMARK = Benchmark(
    name="resnet50",
    run="python train.py --seed {seed} {args}",
    inputs=(Input(name="imagenet", url="https://example.org/i.tar", sha256="0a" * 32),),
    scenarios=(Variant(name="default"), Variant(name="tiling", args="--tiling")),
    inits=(Variant(name="scratch"),),
)
CONFIG = RepoConfig(python="3.11", setup="pip install -e .", benchmarks={"resnet50": BENCHMARK})
LEASE = PlannedLease(benchmark="resnet50", scenario="default", init="scratch", hardware="a100x1", runs=(), timeout_s=60)
A100 = Hardware(name="a100x1", backend="gce", options={"machine_type": "a2-highgpu-1g", "zones": "europe-west4-a"})
ACCURACY = Metric(name="accuracy", tag="validation/accuracy", pick="best", unit="pp", better="higher", tolerance=0.5)


def _of(config: RepoConfig = CONFIG, lease: PlannedLease = LEASE, hardware: Hardware = A100) -> Fingerprint:
    return fingerprint_of(config, lease, hardware)


def _with(**changes: object) -> RepoConfig:
    return replace(CONFIG, benchmarks={"resnet50": replace(BENCHMARK, **changes)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        lambda: _of(config=_with(run="python train.py --fast --seed {seed} {args}")),
        lambda: _of(config=_with(inputs=(replace(BENCHMARK.inputs[0], sha256="0b" * 32),))),
        lambda: _of(config=replace(CONFIG, python="3.12")),
        lambda: _of(lease=replace(LEASE, scenario="tiling")),
        lambda: _of(lease=replace(LEASE, parameters={"batch": "512"})),
        lambda: _of(lease=replace(LEASE, hosts=2)),
        lambda: _of(hardware=replace(A100, options={"machine_type": "a2-highgpu-2g"})),
        lambda: _of(hardware=replace(A100, backend="kubernetes")),
    ],
)
def test_what_starts_a_new_series(other: Callable[[], Fingerprint]) -> None:
    assert other() != _of()
    assert series_id(7, other(), ACCURACY) != series_id(7, _of(), ACCURACY)


@pytest.mark.parametrize(
    "other",
    [
        lambda: _of(config=replace(CONFIG, setup="pip install -e .[all]")),
        lambda: _of(config=_with(description="ResNet-50", paths=("train.py",), timeout_s=1)),
        lambda: _of(config=_with(inputs=(replace(BENCHMARK.inputs[0], url="https://mirror.example.org/i.tar"),))),
        lambda: _of(lease=replace(LEASE, timeout_s=30, estimate_usd=3.0)),
        lambda: _of(hardware=replace(A100, price_usd_per_hour=3.0, wait_s=5.0, at_once=4)),
        lambda: _of(hardware=replace(A100, options={"machine_type": "a2-highgpu-1g", "zones": "us-central1-a"})),
    ],
)
def test_what_does_not(other: Callable[[], Fingerprint]) -> None:
    assert other() == _of()


def test_a_metric_that_is_read_otherwise_is_another_series_and_one_that_is_judged_otherwise_is_not() -> None:
    same = replace(ACCURACY, tolerance=1.0, noise=0.1, gate=True, target=76.0, confirm=False)
    assert series_id(7, _of(), same) == series_id(7, _of(), ACCURACY)
    for other in (
        replace(ACCURACY, pick="last"),
        replace(ACCURACY, unit="%"),
        replace(ACCURACY, tag="accuracy"),
        replace(ACCURACY, name="top1"),
    ):
        assert series_id(7, _of(), other) != series_id(7, _of(), ACCURACY)
    assert series_id(8, _of(), ACCURACY) != series_id(7, _of(), ACCURACY)
