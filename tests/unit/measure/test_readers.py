"""What the readers see: real files, files of real writers, and files that are damaged in every way."""

import json
import math
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2
from tensorboardX import SummaryWriter as WriterX

from bot.measure.readers import Reading, describe, read_folder
from bot.measure.readers.tfevents import read
from tests.harness.cases import case_file
from tests.unit.measure.records import file_of, places, record, scalar

DATA = file_of("loss", 40)
PLACES = places(DATA)
RELAXED = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _real(tmp_path: Path, *names: str) -> Reading:
    for name in names:
        folder = tmp_path / name.split("-")[0]
        folder.mkdir(exist_ok=True)
        suffix = ".jsonl" if name.endswith(".jsonl") else ""
        (folder / f"events.out.tfevents.1{suffix}").write_bytes(case_file(name).read_bytes())
    return read_folder(tmp_path)


def _values(reading: Reading, tag: str, run: str = ".") -> list[float]:
    return [float(value) for value in reading.curves[run, tag].values]


# ---- real files -----------------------------------------------------------------------------------------------------


def test_plain_scalars(tmp_path: Path) -> None:
    reading = _real(tmp_path, "01-strict-run1.tfevents")
    curve = reading.curves["01", "strict/foo"]
    assert len(curve) == 100
    assert list(curve.steps[[0, 1, -1]]) == [0, 5, 495]
    assert (round(float(curve.values[0]), 5), round(float(curve.values[-1]), 5)) == (1.49626, 1.21209)
    assert reading.health.records == 101
    assert (reading.health.bad_records, reading.health.tail_bytes) == (0, 0)


def test_several_tags_of_unequal_length(tmp_path: Path) -> None:
    reading = _real(tmp_path, "03-lax-run1.tfevents", "04-lax-run3.tfevents")
    assert {tag: len(curve) for (run, tag), curve in reading.curves.items() if run == "03"} == {
        "lax/foo": 110,
        "lax/bar_1": 110,
        "lax/bar_2": 110,
    }
    assert len(reading.curves["04", "lax/foo"]) == 130
    assert round(_values(reading, "lax/foo", "04")[-1], 5) == 3.65755


def test_scalars_as_tensors_and_two_directories(tmp_path: Path) -> None:
    reading = _real(tmp_path, "05-tf2-train.tfevents", "06-tf2-test.tfevents")
    for run, first, last in (("05", 0.20480, 0.03607), ("06", 0.07552, 0.05593)):
        loss = _values(reading, "loss", run)
        assert len(loss) == 10
        assert (round(loss[0], 5), round(loss[-1], 5)) == (first, last)
        assert len(reading.curves[run, "accuracy"]) == 10


@pytest.mark.parametrize("name", ["07-simple-230B.tfevents", "08-simple.tfevents"])
def test_images_and_histograms_are_no_scalars(tmp_path: Path, name: str) -> None:
    reading = _real(tmp_path, name)
    assert [tag for _, tag in reading.curves] == ["loss"]
    (curve,) = reading.curves.values()
    assert (int(curve.steps[0]), round(float(curve.values[0]), 6)) == (20000, 0.9)


def test_graphs_beside_scalars(tmp_path: Path) -> None:
    reading = _real(tmp_path, "10-pt-cvp.tfevents")
    assert {len(curve) for curve in reading.curves.values()} == {17}
    assert len(reading.curves) == 6
    accuracy = _values(reading, "epoch_acc", "10")
    assert (accuracy[0], accuracy[-1]) == (0.0, 1.0)
    assert reading.health.records == 105


@pytest.mark.parametrize(
    "name",
    [
        "01-strict-run1.tfevents",
        "03-lax-run1.tfevents",
        "05-tf2-train.tfevents",
        "07-simple-230B.tfevents",
        "10-pt-cvp.tfevents",
    ],
)
def test_equal_to_the_last_bit_to_tensorboards_own_reader(tmp_path: Path, name: str) -> None:
    reading = _real(tmp_path, name)
    theirs = EventAccumulator(
        str(tmp_path / name.split("-", maxsplit=1)[0]), size_guidance={"scalars": 0, "tensors": 0}
    )
    theirs.Reload()
    for (_, tag), curve in reading.curves.items():
        if tag in theirs.Tags()["scalars"]:
            events = theirs.Scalars(tag)
            assert list(curve.steps) == [event.step for event in events]
            assert list(curve.wall_times) == [event.wall_time for event in events]
            assert list(curve.values) == [event.value for event in events]
        else:
            tensors = theirs.Tensors(tag)
            assert list(curve.steps) == [event.step for event in tensors]
            assert list(curve.values) == [
                event.tensor_proto.float_val[0]
                if event.tensor_proto.float_val
                else float(np.frombuffer(event.tensor_proto.tensor_content, "<f4")[0])
                for event in tensors
            ]


def test_numbers_in_quotes(tmp_path: Path) -> None:
    reading = _real(tmp_path, "12-metrics-good.jsonl")
    loss = reading.curves["12", "loss"]
    assert list(loss.steps) == [0, 1, 2]
    assert [round(float(value), 5) for value in loss.values] == [0.22082, 0.14150, 0.10683]
    assert list(reading.curves["12", "acc"].steps) == [0, 1]
    assert loss.wall_times[0] == pytest.approx(1638422847.28721)
    assert loss.wall_times[1] == pytest.approx(1638455270.000035, abs=1e-5)
    assert math.isnan(loss.wall_times[2])


def test_lines_that_are_no_objects(tmp_path: Path) -> None:
    reading = _real(tmp_path, "13-metrics-invalid-format.jsonl")
    assert reading.curves == {}
    assert reading.health.records == 0
    said = " ".join(reading.notes)
    assert "1" in said
    assert "2" in said


# ---- real writers ---------------------------------------------------------------------------------------------------


def test_tensorboardx_with_falling_steps_and_sub_runs(tmp_path: Path) -> None:
    writer = WriterX(str(tmp_path))
    for step in range(5):
        writer.add_scalar("loss", step / 4, -step)
    writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 3)
    writer.add_histogram("weights", np.arange(10.0), 1)
    writer.close()
    reading = read_folder(tmp_path)
    assert list(reading.curves[".", "loss"].steps) == [0, -1, -2, -3, -4]
    assert not any("go back" in note for note in reading.notes)
    assert {run for run, _ in reading.curves} == {".", "both/a", "both/b"}


def test_torch_in_all_its_styles(tmp_path: Path) -> None:
    torch_writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    writer = torch_writer(str(tmp_path))
    writer.add_scalar("plain", 0.1, 1)
    writer.add_scalar("new", 0.25, 1, new_style=True)
    writer.add_scalar("double", 0.1, 1, new_style=True, double_precision=True)
    writer.add_scalar("nan", math.nan, 1)
    writer.add_scalar("inf", -math.inf, 1)
    writer.add_text("words", "hello")
    writer.add_hparams({"lr": 0.1}, {"hparam/accuracy": 0.9}, run_name="trial")
    writer.close()
    reading = read_folder(tmp_path)
    assert _values(reading, "plain") == [float(np.float32(0.1))]
    assert _values(reading, "new") == [0.25]
    assert _values(reading, "double") == [0.1]
    assert math.isnan(_values(reading, "nan")[0])
    assert _values(reading, "inf") == [-math.inf]
    assert ("trial", "hparam/accuracy") in reading.curves
    assert reading.health.non_finite == 2


# ---- damage ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, len(DATA)))
@RELAXED
def test_a_file_that_is_cut_off_anywhere(tmp_path: Path, end: int) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(DATA[:end])
    contents = read(path)
    whole = bisect_right(PLACES, end) - 1
    assert contents.records == whole
    assert contents.bad_records == 0
    assert contents.tail_bytes == end - PLACES[whole]
    assert len(contents.tags["loss"].columns()[2] if contents.tags else []) == max(0, whole - 1)


@given(st.integers(0, len(DATA) * 8 - 1))
@RELAXED
def test_a_single_flipped_bit_loses_one_record(tmp_path: Path, bit: int) -> None:
    broken = bytearray(DATA)
    broken[bit // 8] ^= 1 << (bit % 8)
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(broken)
    contents = read(path)
    hit = bisect_right(PLACES, bit // 8) - 1
    assert contents.bad_records == 1
    assert contents.tail_bytes == 0
    assert contents.records == len(PLACES) - 2
    wanted = [at / 2 for at in range(40) if at + 1 != hit]
    assert contents.tags["loss"].columns()[2].tolist() == wanted
    assert f"at byte {PLACES[hit]}" in contents.notes[0]


def test_a_real_file_without_its_end_and_with_it(tmp_path: Path) -> None:
    data = case_file("01-strict-run1.tfevents").read_bytes()
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(data[:-7])
    cut = read_folder(tmp_path)
    assert len(cut.curves[".", "strict/foo"]) == 99
    assert cut.health.tail_bytes > 0
    path.write_bytes(data)
    assert len(read_folder(tmp_path).curves[".", "strict/foo"]) == 100


@pytest.mark.parametrize("offset", [0, 20])
def test_a_real_file_with_a_flipped_byte(tmp_path: Path, offset: int) -> None:
    data = bytearray(case_file("01-strict-run1.tfevents").read_bytes())
    place = places(bytes(data))[50] + offset
    data[place] ^= 0x40
    (tmp_path / "events.out.tfevents.1").write_bytes(data)
    reading = read_folder(tmp_path)
    assert len(reading.curves[".", "strict/foo"]) == 99
    assert reading.health.bad_records == 1
    assert "damaged" in reading.notes[0]


@given(st.binary(max_size=400))
@RELAXED
def test_whatever_the_bytes_nothing_is_raised(tmp_path: Path, data: bytes) -> None:
    for name in ("events.out.tfevents.1", "a.jsonl", "b.csv"):
        (tmp_path / name).write_bytes(data)
    describe(read_folder(tmp_path))


def test_a_record_that_is_no_event(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(record(b"\xff\xff\xff") + record(scalar("loss", 1, 2.0)))
    reading = read_folder(tmp_path)
    assert reading.health.bad_records == 1
    assert _values(reading, "loss") == [2.0]


# ---- several files of one run ---------------------------------------------------------------------------------------


def test_a_training_that_was_resumed(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(file_of("loss", 150))
    (tmp_path / "events.out.tfevents.2").write_bytes(file_of("loss", 200, first_step=100, wall_time=5000.0))
    reading = read_folder(tmp_path)
    assert list(reading.curves[".", "loss"].steps) == list(range(300))
    assert reading.health.dropped_by_resume == 50


def test_two_writers_at_once_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(file_of("loss", 10))
    (tmp_path / "events.out.tfevents.2").write_bytes(file_of("loss", 10, wall_time=1003.0))
    reading = read_folder(tmp_path)
    assert {run: len(curve) for (run, _), curve in reading.curves.items()} == {".": 10, "writer-2": 10}
    assert "2 writers" in reading.notes[0]


def test_a_restart_that_says_from_where(tmp_path: Path) -> None:
    start = event_pb2.Event(step=6, wall_time=5000.0)
    start.session_log.status = event_pb2.SessionLog.START
    (tmp_path / "events.out.tfevents.1").write_bytes(file_of("loss", 10) + record(scalar("other", 9, 1.0)))
    (tmp_path / "events.out.tfevents.2").write_bytes(
        record(start.SerializeToString()) + record(scalar("loss", 6, 9.0, 5001.0))
    )
    reading = read_folder(tmp_path)
    assert list(reading.curves[".", "loss"].steps) == [*range(6), 6]
    assert len(reading.curves[".", "other"]) == 0
    assert reading.health.dropped_by_resume == 5
    assert "other" not in describe(reading)["runs"]["."]


def test_steps_that_go_back_are_told(tmp_path: Path) -> None:
    events = [record(scalar("loss", step, 1.0)) for step in (1, 2, 1, 2)]
    (tmp_path / "events.out.tfevents.1").write_bytes(b"".join(events))
    reading = read_folder(tmp_path)
    assert len(reading.curves[".", "loss"]) == 4
    assert "go back" in reading.notes[0]


def test_unknown_wall_times(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(record(scalar("loss", 1, 1.0, 0.0)))
    assert math.isnan(read_folder(tmp_path).curves[".", "loss"].wall_times[0])


# ---- rows -----------------------------------------------------------------------------------------------------------


def test_rows_follow_one_rule(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "loss": 0.5, "note": "warm", "ok": True, "gone": None, "nested": {"acc": "0.25"}},
        {"step": 2, "loss": "NaN", "list": [1, 2], "big": 10**400},
        {"loss": "0.125"},
    ]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '\n[1]\n{"step": 9,')
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "m.csv").write_text("\ufeffstep,loss,note\n1,0.5,warm\n2,,x\n3,1e-3,\n4\n")
    reading = read_folder(tmp_path)
    loss = reading.curves["a", "loss"]
    assert list(loss.steps) == [1, 2, 2]
    assert math.isnan(float(loss.values[1]))
    assert {tag for run, tag in reading.curves if run == "a"} == {"loss", "nested/acc", "big"}
    assert _values(reading, "big", "a") == [math.inf]
    assert list(reading.curves["b", "loss"].steps) == [1, 3]
    assert {tag for run, tag in reading.curves if run == "b"} == {"loss"}
    assert (reading.health.bad_records, reading.health.tail_bytes) == (2, 11)


def test_the_description_holds_nothing_that_json_lacks(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"x": NaN}\n{"x": Infinity}\n{"x": 2}\n')
    said = json.loads(json.dumps(describe(read_folder(tmp_path)), allow_nan=False))
    assert said["runs"]["."]["x"] == {
        "points": 3,
        "first": {"step": 0, "value": "NaN"},
        "last": {"step": 2, "value": 2.0},
        "min": 2.0,
        "max": 2.0,
        "non_finite": 2,
    }


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "m.jsonl").write_text('{"x": 1}\n')
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "m.jsonl").symlink_to(tmp_path / "elsewhere" / "m.jsonl")
    (tmp_path / "logs" / "more").symlink_to(tmp_path / "elsewhere")
    assert read_folder(tmp_path / "logs").curves == {}
