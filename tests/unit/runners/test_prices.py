"""The dated table of list prices, and what is made of it."""

import tomllib
from pathlib import Path

import pytest

import runners
from runners.gpus import GPUS
from runners.prices import list_price
from runners.tpus import TPUS

TABLE = tomllib.loads((Path(runners.__file__ or "").parent / "prices.toml").read_text())
# so new or so seldom sold by the hour that the operator has to say it
UNPRICED = {"b200"}


@pytest.mark.parametrize(
    ("backend", "parts", "kind", "zone", "price"),
    [
        ("gce", {"a2-highgpu-1g": 1}, "standard", "us-central1-a", 3.68),
        ("gce", {"a2-highgpu-1g": 1}, "spot", "us-central1-a", 1.84),
        ("gce", {"a2-highgpu-1g": 1}, "standard", "europe-west4-b", 4.0848),
        # the machine and each GPU that is attached to it
        ("gce", {"n1-standard-16": 1, "nvidia-tesla-t4": 2}, "standard", "us-west1-b", 1.46),
        # a kind without a price of its own is never dearer than standard
        ("gce", {"g2-standard-8": 1}, "flex-start", "us-east1-c", 0.86),
        ("tpu", {"v5litepod": 4}, "standard", "us-central1-a", 4.8),
        ("gce", {"a4-highgpu-8g": 1}, "standard", "us-central1-a", None),
        ("gce", {"a2-highgpu-1g": 1}, "standard", "mars-north1-a", None),
        ("gce", {"n1-standard-8": 1, "nvidia-unheard-of": 1}, "standard", "us-central1-a", None),
        # a type of which we do not know how many chips it has
        ("tpu", {"v5p": 0}, "standard", "us-east5-a", None),
    ],
)
def test_list_prices(backend: str, parts: dict[str, int], kind: str, zone: str, price: float | None) -> None:
    assert list_price(backend, parts, kind, zone) == price


def test_the_table_is_dated_and_covers_what_the_backends_name() -> None:
    assert len(TABLE["date"]) == len("2026-04")
    assert TABLE["currency"] == "USD"
    assert TABLE["source"]
    for name, gpu in GPUS.items():
        for machine_type in gpu.machine_types.values():
            assert (machine_type in TABLE["gce"]) == (name not in UNPRICED), machine_type
        assert not gpu.accelerator or gpu.accelerator in TABLE["gce"]
    assert {tpu.prefix for tpu in TPUS.values()} == set(TABLE["tpu"])
    for prices in (*TABLE["gce"].values(), *TABLE["tpu"].values()):
        assert 0 < prices.get("spot", prices["standard"]) <= prices["standard"]
    assert all(1.0 <= factor < 2.0 for factor in TABLE["regions"].values())
