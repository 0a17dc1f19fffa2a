"""Values that are not just one of those that were written: at a step, until a value, how fast; and in another unit."""

import math

import numpy as np
import pytest

from bot.measure.metrics import Amount, Metric, complete
from bot.measure.picking import in_unit, measured
from bot.measure.reading import Curve, Health, Reading
from bot.measure.units import factor


def _reading(
    values: list[float], *, every: int = 100, seconds: float = 5.0, tag: str = "acc", run: str = "."
) -> Reading:
    count = len(values)
    curve = Curve(
        run=run,
        tag=tag,
        steps=np.arange(count) * every,
        wall_times=1000.0 + np.arange(count) * seconds,
        values=np.array(values, dtype=np.float64),
    )
    return Reading(curves={(run, tag): curve}, health=Health())


def _metric(**declared: object) -> Metric:
    return complete("m", {"tag": "acc", "better": "higher", **declared})


CLIMB = [10.0, 40.0, 70.0, 77.0, 75.0]


@pytest.mark.parametrize(
    ("declared", "value", "step"),
    [
        ({"pick": "at", "number": 200}, 70.0, 200),
        ({"pick": "at", "number": 250}, 70.0, 200),
        ({"pick": "at", "number": 400}, 75.0, 400),
        ({"pick": "steps to", "number": 70}, 200.0, 200),
        ({"pick": "seconds to", "number": 76}, 15.0, 300),
        ({"pick": "seconds to", "number": 76, "unit": "min"}, 0.25, 300),
        ({"pick": "rate"}, 20.0, None),
        ({"pick": "rate", "per_step": 64.0}, 1280.0, None),
    ],
)
def test_picks_with_a_number_and_rates(declared: dict[str, object], value: float, step: int | None) -> None:
    found = measured(_metric(**declared), _reading(CLIMB), {})
    assert (found.value, found.step) == (pytest.approx(value), step)


@pytest.mark.parametrize(
    ("tag", "values", "level", "step"),
    [
        # nothing is known of these: they come from where they begin
        ("m", [3.0, math.nan, 2.0, 1.2, 1.9], 1.5, 300),
        ("m", [1.0, math.nan, 2.0, 3.0], 1.5, 200),
        ("m", [math.inf, 2.0], 2.0, 100),
        # an accuracy rises to a value and a loss falls to it, so these are there from the first on
        ("val/accuracy", [0.9, 0.4, 0.95], 0.5, 0),
        ("val/loss", [0.2, 0.9, 0.1], 0.5, 0),
        ("val/loss", [math.nan, 0.9, 0.1], 0.5, 200),
    ],
)
def test_a_value_is_reached_from_wherever_the_run_began(tag: str, values: list[float], level: float, step: int) -> None:
    metric = complete("m", {"tag": tag, "pick": "steps to", "number": level})
    assert measured(metric, _reading(values, tag=tag), {}).value == step


@pytest.mark.parametrize(
    ("declared", "values", "said"),
    [
        ({"pick": "at", "number": 500}, CLIMB, "ends at step 400, before step 500"),
        ({"pick": "seconds to", "number": 90}, CLIMB, "never reached 90: it came to 77"),
        ({"pick": "steps to", "number": 0.1}, [math.nan], "never reached 0.1: it has no value"),
        ({"pick": "rate"}, [1.0], "needs two values"),
    ],
)
def test_what_a_run_cannot_tell_is_missing_and_said(
    declared: dict[str, object], values: list[float], said: str
) -> None:
    found = measured(_metric(**declared), _reading(values), {})
    assert found.value is None
    assert found.reason in ("not_reached", "no_points")
    assert said in found.sentence


def test_without_times_there_are_no_seconds() -> None:
    reading = _reading(CLIMB, seconds=math.nan)
    assert "have no times" in measured(_metric(pick="seconds to", number=70), reading, {}).sentence
    assert measured(_metric(pick="steps to", number=70), reading, {}).value == 200.0
    assert measured(_metric(pick="rate"), reading, {}).value is None


def test_what_is_not_a_number_at_that_step_has_diverged() -> None:
    reading = _reading([1.0, math.nan, 3.0])
    assert measured(_metric(pick="at", number=100), reading, {}).reason == "diverged"
    assert measured(_metric(pick="at", number=200), reading, {}).value == 3.0


def test_what_is_assumed_of_them() -> None:
    to = _metric(pick="seconds to", number=76)
    assert (to.unit, to.scale, to.tolerance, to.noise, to.per) == ("s", "log", 0.10, 0.05, "seed")
    assert complete("m", {"tag": "acc", "pick": "seconds to", "number": 76}).better == "lower"
    rate = complete("m", {"tag": "acc", "pick": "rate", "per_step": 64.0})
    assert (rate.unit, rate.better, rate.per, rate.tolerance) == ("examples/s", "higher", "machine", 0.05)
    assert (to.picked, rate.picked) == ("seconds to 76", "rate")


# ---- units ----------------------------------------------------------------------------------------------------------


def test_values_are_turned_into_the_unit_of_the_metric() -> None:
    metric = complete("step_time", {"tag": "acc", "unit": "ms", "written": "s"})
    assert measured(metric, _reading([0.25, 0.5, 0.25]), {}).value == 250.0
    assert in_unit(metric, _reading([0.25]).curves[".", "acc"]).values.tolist() == [250.0]
    memory = complete("peak", {"tag": "acc", "unit": "GiB", "written": "B"})
    assert measured(memory, _reading([2.0**31, 2.0**30]), {}).value == 2.0
    points = complete("accuracy", {"tag": "acc", "unit": "pp", "written": "fraction"})
    assert measured(points, _reading([0.5, 0.9]), {}).value == pytest.approx(90.0)


@pytest.mark.parametrize(("written", "unit"), [("s", "MB"), ("s", ""), ("furlong", "s"), ("pp", "s")])
def test_units_that_have_nothing_to_do_with_each_other(written: str, unit: str) -> None:
    with pytest.raises(ValueError, match="cannot be turned into"):
        factor(written, unit)
    with pytest.raises(ValueError, match="cannot be turned into"):
        complete("m", {"tag": "t", "unit": unit, "written": written, "kind": "other"})


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"pick": "at"}, "number behind the pick"),
        ({"pick": "last", "number": 3.0}, "number behind the pick"),
        ({"pick": "last", "per_step": 64.0}, "per_step goes with pick: rate"),
        ({"pick": "rate", "per_step": 0.0}, "more than 0"),
        ({"pick": "rate", "written": "s"}, "leave written out"),
        ({"pick": "seconds to", "number": 1.0, "unit": "MB"}, "cannot be turned into"),
    ],
)
def test_picks_that_contradict_themselves(declared: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        _metric(tolerance=Amount(value=5, percent=True), **declared)


# ---- patterns -------------------------------------------------------------------------------------------------------


def test_a_pattern_names_the_one_tag_that_fits() -> None:
    one = _reading([1.0, 2.0], tag="val_acc", run="version_3")
    assert measured(complete("m", {"tag": "*/val_acc"}), one, {}).value == 2.0
    assert measured(complete("m", {"tag": "val_*"}), one, {}).value == 2.0
    assert measured(complete("m", {"tag": "train*"}), one, {}).reason == "no_tag"
    other = _reading([5.0], tag="val_loss", run="version_3")
    both = Reading(curves={**one.curves, **other.curves}, health=Health())
    found = measured(complete("m", {"tag": "val_*"}), both, {})
    assert "name one of `version_3/val_acc`, `version_3/val_loss`" in found.sentence
    brackets = _reading([4.0], tag="acc[top1]")
    assert measured(complete("m", {"tag": "acc[*"}), brackets, {}).value == 4.0
