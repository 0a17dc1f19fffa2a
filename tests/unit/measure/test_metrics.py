"""What a metric is when little is declared, and what one run gives for it."""

import math
from pathlib import Path

import pytest

from bot.measure.comparison import Evidence
from bot.measure.metrics import Amount, Metric, Sample, complete
from bot.measure.picking import find_curve, measured
from bot.measure.readers import read_folder
from bot.measure.reading import Reading
from bot.measure.verdict import judge


def _reading(folder: Path, **curves: list[float]) -> Reading:
    for name, values in curves.items():
        run, _, tag = name.rpartition("__")
        place = folder / run if run else folder
        place.mkdir(parents=True, exist_ok=True)
        lines = [f'{{"step": {step}, "{tag}": {_json(value)}}}\n' for step, value in enumerate(values)]
        (place / f"{tag}.jsonl").write_text("".join(lines))
    return read_folder(folder)


def _json(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), str(value))


def _metric(name: str = "x", **declared: object) -> Metric:
    return complete(name, {"tag": name, **declared})


# ---- what is taken for granted


@pytest.mark.parametrize(
    ("name", "unit", "kind", "better"),
    [
        ("accuracy", "", "accuracy", "higher"),
        ("val/top1", "pp", "accuracy", "higher"),
        ("loss", "", "loss", "lower"),
        ("step_time", "s", "time", "lower"),
        ("images_per_sec", "", "time", "higher"),
        ("peak_memory", "MB", "memory", "lower"),
        ("latency", "ms", "latency", "lower"),
        ("score", "", "other", None),
        # what a script may report of a model
        ("FLOPs", "", "count", "lower"),
        ("cost", "GFLOPs", "count", "lower"),
        ("forward", "MMACs", "count", "lower"),
        ("speed", "TFLOPS", "other", None),
        ("achieved_flops_per_sec", "GFLOPs", "time", "higher"),
        ("params", "", "count", "lower"),
        ("inference", "ms", "latency", "lower"),
        ("inference_time_p99", "", "latency", "lower"),
        ("inference_accuracy", "pp", "accuracy", "higher"),
        ("inference_fps", "", "time", "higher"),
        ("inference", "", "other", None),
    ],
)
def test_kind_and_direction_are_guessed_only_where_they_are_certain(
    name: str, unit: str, kind: str, better: str | None
) -> None:
    metric = complete(name, {"tag": name, "unit": unit} if unit else {"tag": name})
    assert metric.better == better
    assert metric.kind == kind


@pytest.mark.parametrize(
    ("name", "unit", "tolerance", "noise", "per", "pick"),
    [("flops", "GFLOPs", 0.001, 0.0, "seed", "last"), ("inference", "ms", 0.05, 0.03, "machine", "median")],
)
def test_flops_and_latency_that_a_script_reports_have_their_defaults(
    name: str, unit: str, tolerance: float, noise: float, per: str, pick: str
) -> None:
    metric = _metric(name, unit=unit, gate=True)
    assert (metric.scale, metric.tolerance, metric.noise) == ("log", tolerance, noise)
    assert (metric.per, metric.pick) == (per, pick)


def test_flops_are_turned_into_their_unit_and_one_run_of_each_side_is_enough(tmp_path: Path) -> None:
    metric = complete("flops", {"tag": "flops", "unit": "GFLOPs", "written": "FLOPs", "gate": True})
    head, base = (
        measured(metric, _reading(tmp_path / str(value), flops=[value]), {}).value or 0.0 for value in (4.2e9, 4.1e9)
    )
    assert (head, base) == (pytest.approx(4.2), pytest.approx(4.1))
    more, same = ((Sample(value=value, seed=1, machine="m", commit="c"),) for value in (head, base))
    assert judge(Evidence(metric=metric, head=more, base=same, paired=False)).verdict == "regression"
    assert judge(Evidence(metric=metric, head=same, base=same, paired=False)).verdict == "no change"


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({}, "either tag"),
        ({"tag": "x", "builtin": "wall_seconds"}, "either tag"),
        ({"tag": "x", "tolerance": Amount(value=-1.0)}, "less than 0"),
        ({"tag": "x", "tolerance": Amount(value=5, percent=True), "noise": Amount(value=1.0)}, "both"),
        ({"tag": "x", "unit": "pp", "tolerance": Amount(value=5, percent=True)}, "points"),
        ({"tag": "x", "scale": "linear", "tolerance": Amount(value=5, percent=True)}, "without %"),
        ({"tag": "x", "scale": "log", "tolerance": Amount(value=5.0)}, "with %"),
        ({"tag": "x", "gate": True}, "better"),
        ({"tag": "x", "pick": "best"}, "better"),
        ({"tag": "x", "target": 1.0}, "better"),
        ({"tag": "x", "better": "higher", "gate": True}, "tolerance"),
    ],
)
def test_declarations_that_contradict_each_other(declared: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        complete("x", declared)


def test_amounts_make_the_scale() -> None:
    assert _metric(tolerance=Amount(value=5, percent=True)).scale == "log"
    assert _metric(tolerance=Amount(value=5, percent=True)).tolerance == 0.05
    assert _metric(tolerance=Amount(value=5.0)).scale == "linear"
    assert complete("t", {"builtin": "wall_seconds"}).unit == "s"


# ---- the value of one run


@pytest.mark.parametrize(
    ("pick", "better", "value", "step"),
    [
        ("last", "higher", 2.0, 3),
        ("best", "higher", 4.0, 2),
        ("best", "lower", 1.0, 0),
        ("min", "higher", 1.0, 0),
        ("max", "lower", 4.0, 2),
        ("median", "lower", 2.5, None),
        ("mean", "lower", 2.5, None),
    ],
)
def test_picks(tmp_path: Path, pick: str, better: str, value: float, step: int | None) -> None:
    reading = _reading(tmp_path, x=[1.0, 3.0, 4.0, 2.0])
    found = measured(_metric(pick=pick, better=better), reading, {})
    assert (found.value, found.step) == (value, step)
    assert find_curve(_metric(), reading) is reading.curves[".", "x"]


def test_fractions_become_points_and_percents_stay(tmp_path: Path) -> None:
    assert measured(_metric("accuracy"), _reading(tmp_path / "a", accuracy=[0.5, 0.925]), {}).value == 92.5
    assert measured(_metric("accuracy"), _reading(tmp_path / "b", accuracy=[50.0, 92.5]), {}).value == 92.5
    in_percent = _metric("accuracy", unit="%", kind="accuracy", better="higher")
    assert measured(in_percent, _reading(tmp_path / "c", accuracy=[0.5, 0.9]), {}).value == 0.9


def test_a_run_that_diverged_has_no_value(tmp_path: Path) -> None:
    reading = _reading(tmp_path, x=[1.0, math.nan, 2.0], y=[1.0, math.inf])
    assert measured(_metric(pick="last"), reading, {}).value == 2.0
    for metric in (_metric(pick="median"), _metric("y")):
        found = measured(metric, reading, {})
        assert (found.value, found.reason) == (None, "diverged")
        assert "step 1" in found.sentence


def test_what_is_missing_is_said_with_what_is_near(tmp_path: Path) -> None:
    found = measured(_metric("val/acuracy"), _reading(tmp_path, accuracy=[1.0]), {})
    assert (found.value, found.reason) == (None, "no_tag")
    assert "accuracy" in found.sentence
    assert "no scalars at all" in measured(_metric(), read_folder(tmp_path / "empty"), {}).sentence
    assert measured(complete("t", {"builtin": "wall_seconds"}), read_folder(tmp_path), {}).reason == "no_points"
    assert (
        measured(complete("t", {"builtin": "wall_seconds"}), read_folder(tmp_path), {"wall_seconds": 3.0}).value == 3.0
    )


def test_tags_in_directories(tmp_path: Path) -> None:
    reading = _reading(tmp_path, train__loss=[3.0, 2.0], validation__loss=[3.0, 2.5], validation__acc=[1.0])
    assert measured(_metric("validation/loss"), reading, {}).value == 2.5
    assert measured(_metric("acc", unit="x", better="higher"), reading, {}).value == 1.0
    several = measured(_metric("loss"), reading, {})
    assert several.reason == "no_tag"
    assert "train/loss" in several.sentence
    same = _reading(tmp_path / "same", rank0__loss=[2.0, 1.0], rank1__loss=[2.0, 1.0])
    assert measured(_metric("loss"), same, {}).value == 1.0
