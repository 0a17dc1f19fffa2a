"""What the page draws head and base from: plain numbers, where both got to, and nothing that JSON lacks."""

import json
import math

import numpy as np

from bot.measure.metrics import Metric
from bot.measure.reading import Curve
from bot.report.overlay import POINTS, overlay


def _curve(values: list[float], seconds: float = 1.0) -> Curve:
    count = len(values)
    return Curve(
        run=".",
        tag="acc",
        steps=np.arange(count) * 10,
        wall_times=1000 + np.arange(count) * seconds,
        values=np.array(values, dtype=np.float64),
    )


def _metric(**fields: object) -> Metric:
    return Metric(**{"name": "acc", "tag": "acc", "unit": "pp", "better": "higher", **fields})  # type: ignore[arg-type]


def test_sides_marks_and_the_bases_last_value_as_the_goal() -> None:
    head = [_curve([10, 30, 50, 60, 60]), _curve([10, 30, 50, 70, 80])]
    base = [_curve([10, 20, 40, 60, 70], seconds=2.0)]
    found = overlay(_metric(), {"head": head, "base": base})
    assert found["unit"] == "%"
    assert [(side["side"], side["runs"]) for side in found["sides"]] == [("head", 2), ("base", 1)]
    assert found["sides"][0]["centre"] == [10, 30, 50, 65, 70]
    assert (found["sides"][0]["low"][-1], found["sides"][0]["high"][-1]) == (60, 80)
    assert found["marks"] == [
        {"step": 10, "head": 30, "base": 20},
        {"step": 20, "head": 50, "base": 40},
        {"step": 30, "head": 65, "base": 60},
        {"step": 40, "head": 70, "base": 70},
    ]
    assert found["goal"] == {
        "level": 70,
        "of": "base",
        "head": {"step": 30, "seconds": 3.0, "runs": 1, "of": 2},
        "base": {"step": 40, "seconds": 8.0, "runs": 1, "of": 1},
    }


def test_a_declared_target_that_nobody_reaches() -> None:
    found = overlay(_metric(target=90.0), {"head": [_curve([10, 20])], "base": []})
    assert found["goal"] == {
        "level": 90.0,
        "of": "target",
        "head": {"step": None, "seconds": None, "runs": 0, "of": 1},
        "base": None,
    }
    assert [mark["base"] for mark in found["marks"]] == [None] * len(found["marks"])


def test_what_is_no_number_is_null_and_told() -> None:
    nan = float("nan")
    found = overlay(_metric(), {"head": [_curve([1.0, nan, math.inf])], "base": [_curve([nan, nan])]})
    assert [side["diverged"] for side in found["sides"]] == [[10], [0]]
    assert found["goal"] is None
    json.dumps(found, allow_nan=False)


def test_without_a_direction_there_is_no_goal() -> None:
    assert overlay(_metric(better=None), {"head": [_curve([1.0])], "base": [_curve([1.0])]})["goal"] is None


def test_long_curves_are_thinned_without_losing_a_spike() -> None:
    values = [1.0] * 5_000
    values[1234] = 9.0
    (side, _) = overlay(_metric(), {"head": [_curve(values)], "base": [_curve([1.0])]})["sides"]
    assert len(side["at"]) == POINTS
    assert max(side["high"]) == 9.0
