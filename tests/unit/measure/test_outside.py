"""Metrics that no script has to write: what the agent saw of a run, and the weights that it left."""

import math

import pytest

from bot.measure.metrics import BUILTINS, Builtin, complete
from bot.measure.outside import Outside, built_in, known
from bot.measure.picking import measured
from bot.measure.reading import NOTHING
from bot.measure.weights import Weights

SEEN = Outside(
    seconds=90.0,
    checkout_s=1.5,
    setup_s=30.0,
    inputs_s=0.0,
    peak_rss_bytes=512_000_000,
    peak_device_bytes=3_000_000,
    exit_status=0,
    passed=True,
)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("wall_seconds", 90.0, "s"),
        ("checkout_seconds", 1.5, "s"),
        ("setup_seconds", 30.0, "s"),
        ("inputs_seconds", 0.0, "s"),
        ("peak_host_memory", 512.0, "MB"),
        ("peak_device_memory", 3.0, "MB"),
        ("weights_count", 7.0, ""),
        ("weights_size", 0.000028, "MB"),
        ("exit_status", 0.0, ""),
        ("passed", 1.0, ""),
    ],
)
def test_every_built_in_metric_has_its_value(name: Builtin, value: float, unit: str) -> None:
    metric = complete("m", {"builtin": name})
    assert measured(metric, NOTHING, known(SEEN, Weights(7, 28))).value == pytest.approx(value)
    assert (metric.unit, metric.kind) == (unit, BUILTINS[name].kind)


@pytest.mark.parametrize("name", BUILTINS)
def test_what_was_not_told_is_not_measured(name: Builtin) -> None:
    found = built_in(name, known(Outside()))
    assert (found.value, found.reason) == (None, "no_points")
    why = "no readable safetensors file of this run is kept" if "weights" in name else "the agent did not tell it"
    assert found.sentence == f"{name} was not measured: {why}."
    assert built_in(name, {name: math.nan}).value is None


def test_devices_that_cannot_be_asked_say_why() -> None:
    found = built_in("peak_device_memory", known(Outside(device_trouble="nvidia-smi says: Unknown Error")))
    assert found.sentence == "peak_device_memory was not measured: nvidia-smi says: Unknown Error."


@pytest.mark.parametrize(
    ("name", "builtin", "better"),
    [
        ("t", "wall_seconds", "lower"),
        ("t", "setup_seconds", None),
        ("checkout_time", "checkout_seconds", None),
        ("m", "peak_device_memory", "lower"),
        ("params", "weights_count", "lower"),
        ("weights", "weights_count", None),
        ("ok", "passed", "higher"),
        ("status", "exit_status", None),
    ],
)
def test_directions_are_taken_for_granted_only_where_they_are_certain(
    name: str, builtin: Builtin, better: str | None
) -> None:
    assert complete(name, {"builtin": builtin}).better == better
    assert complete(name, {"builtin": builtin, "better": "higher"}).better == "higher"


def test_nothing_is_picked_or_converted() -> None:
    with pytest.raises(ValueError, match="no curve to pick from"):
        complete("m", {"builtin": "wall_seconds", "pick": "rate"})
