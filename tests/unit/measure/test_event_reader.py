"""The event reader against a slow one that knows no tricks: one record after the other, all of it by protobuf."""

import math
import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2

from bot.measure.readers import read_folder
from bot.measure.readers.checksums import LONGEST, joined, masked, parts
from bot.measure.readers.framing import LARGEST
from bot.measure.readers.merging import FileContents
from bot.measure.readers.scalars import scalar_of
from bot.measure.readers.tfevents import EventReader
from tests.unit.measure.records import file_of, places, record, scalar

RELAXED = settings(max_examples=150, deadline=None)
Made = Callable[[event_pb2.Event, float], None]


def _simple(tag: str) -> Made:
    return lambda event, number: event.summary.value.add(tag=tag, simple_value=number) and None


def _tensor(tag: str, form: str, plugin: str) -> Made:
    def make(event: event_pb2.Event, number: float) -> None:
        value = event.summary.value.add(tag=tag)
        value.metadata.plugin_data.plugin_name = plugin
        value.tensor.tensor_shape.SetInParent()
        value.tensor.dtype = 2 if form.startswith("double") else 1
        if form == "content":
            value.tensor.tensor_content = struct.pack("<f", number)
        elif form == "double content":
            value.tensor.tensor_content = struct.pack("<d", number)
        elif form == "double":
            value.tensor.double_val.append(number)
        else:
            value.tensor.float_val.append(number)

    return make


def _text(event: event_pb2.Event, number: float) -> None:
    value = event.summary.value.add(tag="notes")
    value.metadata.plugin_data.plugin_name = "text"
    value.tensor.dtype = 7
    value.tensor.string_val.append(str(number).encode())


def _two(event: event_pb2.Event, number: float) -> None:
    event.summary.value.add(tag="loss", simple_value=number)
    event.summary.value.add(tag="accuracy", simple_value=1 - number)


def _restart(event: event_pb2.Event, number: float) -> None:
    event.session_log.status = event_pb2.SessionLog.START


def _histogram(event: event_pb2.Event, number: float) -> None:
    event.summary.value.add(tag="weights").histo.min = number


def _pair(event: event_pb2.Event, number: float) -> None:
    value = event.summary.value.add(tag="pair")
    value.metadata.plugin_data.plugin_name = "scalars"
    value.tensor.dtype = 1
    value.tensor.tensor_content = struct.pack("<ff", number, number)


MAKERS = {
    "loss": _simple("loss"),
    "another of that length": _simple("last"),
    "accuracy": _simple("train/accuracy"),
    "": _simple(""),
    "TF2": _tensor("epoch_loss", "content", "scalars"),
    "TF2, no plugin": _tensor("epoch_loss", "content", ""),
    "somebody's plugin": _tensor("pr", "content", "pr_curves"),
    "float_val": _tensor("one", "float", "scalars"),
    "double": _tensor("two", "double", "scalars"),
    "double content": _tensor("three", "double content", "scalars"),
    "text": _text,
    "two values": _two,
    "restart": _restart,
    "histogram": _histogram,
    "two numbers": _pair,
}
NUMBERS = st.one_of(st.floats(width=32), st.sampled_from([0.0, math.nan, math.inf, -0.0]))
STEPS = st.one_of(st.integers(0, 400), st.sampled_from([-1, 0, 127, 128, 2**31, 2**56 - 1, 2**56, 2**62, 2**62 + 1]))


@st.composite
def _events(draw: st.DrawFn) -> bytes:
    """Bursts of alike events, as a training writes them, one burst of each kind drawn."""
    written = []
    for _ in range(draw(st.integers(1, 6))):
        made = draw(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=4))
        step, wall_time = draw(STEPS), draw(st.sampled_from([0.0, 1000.0, 1.7e9]))
        numbers = draw(st.lists(NUMBERS, min_size=1, max_size=4))
        for at in range(draw(st.sampled_from([1, 3, 20, 40]))):
            event = event_pb2.Event(step=min(step + at, 2**63 - 1), wall_time=wall_time and wall_time + at)
            MAKERS[made[at % len(made)]](event, numbers[at % len(numbers)])
            written.append(record(event.SerializeToString()))
    return b"".join(written)


def _slowly(data: bytes) -> tuple[dict[str, list[tuple[int, float, float]]], int | None]:
    """Points by tag, and the first step from which something was written again."""
    tags: dict[str, list[tuple[int, float, float]]] = {}
    plugins: dict[str, str] = {}
    purged = None
    for start, end in zip((found := places(data)), found[1:], strict=False):
        event = event_pb2.Event.FromString(data[start + 12 : end - 4])
        if event.session_log.status == event_pb2.SessionLog.START:
            tags = {tag: [point for point in points if point[0] < event.step] for tag, points in tags.items()}
            purged = event.step if purged is None else purged
        for value in event.summary.value:
            plugins.setdefault(value.tag, value.metadata.plugin_data.plugin_name or "")
            if plugins[value.tag] == "":
                plugins.pop(value.tag)
            number = scalar_of(value)
            ours = value.HasField("simple_value") or plugins.get(value.tag) == "scalars"
            if number is not None and ours and value.tag and abs(event.step) <= 2**62:
                tags.setdefault(value.tag, []).append((event.step, event.wall_time or math.nan, number))
    return {tag: points for tag, points in tags.items() if points}, purged


def _read(data: bytes, cuts: list[int]) -> FileContents:
    reader = EventReader()
    ends = [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in zip([0, *ends], ends, strict=False):
        reader.feed(data[start:end])
    return reader.close()


def _told(contents: FileContents) -> dict[str, bytes]:
    return {
        tag: b"".join(column.tobytes() for column in points.columns())
        for tag, points in contents.tags.items()
        if len(points.columns()[0])
    }


@given(_events(), st.lists(st.integers(0, 2**20), max_size=8))
@RELAXED
def test_the_same_points_to_the_last_bit(data: bytes, cuts: list[int]) -> None:
    contents = _read(data, cuts)
    wanted, purged = _slowly(data)
    assert contents.records == len(places(data)) - 1
    assert (contents.bad_records, contents.tail_bytes, contents.purge_from) == (0, 0, purged)
    columns = {
        tag: tuple(
            np.array(column, dtype=kind)
            for column, kind in zip(zip(*points, strict=True), (int, float, float), strict=True)
        )
        for tag, points in wanted.items()
    }
    assert _told(contents) == {tag: b"".join(column.tobytes() for column in some) for tag, some in columns.items()}


@given(
    _events(),
    st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), max_size=4),
    st.lists(st.integers(0, 2**20), max_size=8),
)
@RELAXED
def test_what_is_damaged_does_not_depend_on_where_the_bytes_were_cut(
    data: bytes, damages: list[tuple[int, int]], cuts: list[int]
) -> None:
    broken = bytearray(data)
    for place, bits in damages:
        broken[place % len(broken)] ^= bits
    whole, cut = _read(bytes(broken), []), _read(bytes(broken), cuts)
    assert _told(whole) == _told(cut)
    assert (whole.records, whole.bad_records, whole.tail_bytes) == (cut.records, cut.bad_records, cut.tail_bytes)
    assert whole.notes == cut.notes
    assert whole.bad_records <= len(damages)


@given(st.integers(0, 39), st.integers(0, 11))
@RELAXED
def test_a_damaged_header_costs_one_record_even_before_an_unfinished_one(at: int, place: int) -> None:
    """The next header counts although its record is not whole yet."""
    data = file_of("loss", 40)
    begins = places(data)
    broken = bytearray(data[: begins[at + 2] + 20] if at < 38 else data)
    broken[begins[at] + place] ^= 1
    contents = _read(bytes(broken), [])
    assert contents.bad_records == 1
    assert contents.tail_bytes == (20 if at < 38 else 0)


@given(st.integers(1, LONGEST), st.data())
@RELAXED
def test_checksums_of_many_rows(length: int, data: st.DataObject) -> None:
    rows = [data.draw(st.binary(min_size=length, max_size=length)) for _ in range(3)]
    matrix = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(3, length)
    assert joined(parts(matrix)).tolist() == [masked(row) for row in rows]


def test_the_checksum_is_that_of_the_format() -> None:
    """The value that RFC 3720 gives for 32 zeros, masked as TensorFlow's record format says."""
    assert google_crc32c.value(bytes(32)) == 0x8A9136AA
    assert masked(bytes(32)) == ((0x8A9136AA >> 15 | 0x8A9136AA << 17) + 0xA282EAD8) & 0xFFFFFFFF


# ---- what a script may write to hurt us -----------------------------------------------------------------------------


def test_a_record_that_is_too_large_is_passed_over(tmp_path: Path) -> None:
    length = struct.pack("<Q", LARGEST + 1)
    with (tmp_path / "events.out.tfevents.1").open("wb") as file:
        file.write(file_of("loss", 3) + length + struct.pack("<I", masked(length)))
        file.seek(LARGEST + 1 + 4, 1)
        file.write(record(scalar("loss", 3, 1.5)))
    reading = read_folder(tmp_path)
    assert reading.curves[".", "loss"].values.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert "1 records of more than 64 MiB were left out." in reading.notes[0]


def test_a_length_that_no_file_has(tmp_path: Path) -> None:
    """The header's checksum is right, so the rest of the file would belong to that record."""
    length = struct.pack("<Q", 2**63)
    (tmp_path / "events.out.tfevents.1").write_bytes(file_of("loss", 3) + length + struct.pack("<I", masked(length)))
    reading = read_folder(tmp_path)
    assert len(reading.curves[".", "loss"]) == 3
    assert "more than 64 MiB" in reading.notes[0]


@pytest.mark.parametrize("tag", ["x" * 501, ""])
def test_tags_that_are_too_long_or_empty_are_named(tmp_path: Path, tag: str) -> None:
    events = [record(scalar(tag, at, 1.0)) for at in range(20)]
    (tmp_path / "events.out.tfevents.1").write_bytes(file_of("loss", 3) + b"".join(events))
    reading = read_folder(tmp_path)
    assert [tag for _, tag in reading.curves] == ["loss"]
    assert f"`{tag[:100]}` was left out" in reading.notes[0]
    assert "at most 500 characters" in reading.notes[0]


def test_more_tags_than_anybody_reads(tmp_path: Path) -> None:
    events = [record(scalar(f"tag{at}", 0, 1.0)) for at in range(5_010)]
    (tmp_path / "events.out.tfevents.1").write_bytes(b"".join(events))
    reading = read_folder(tmp_path)
    assert len(reading.curves) == 5_000
    assert "`tag5000` and 9 more tags were left out" in reading.notes[0]


def test_a_tensor_that_claims_more_than_it_holds(tmp_path: Path) -> None:
    """TensorBoard's own reader would fill a terabyte with the one number."""
    event = event_pb2.Event(step=1, wall_time=1000.0)
    value = event.summary.value.add(tag="huge")
    value.metadata.plugin_data.plugin_name = "scalars"
    value.tensor.dtype = 1
    value.tensor.tensor_shape.dim.add(size=2**40)
    value.tensor.float_val.append(1.0)
    (tmp_path / "events.out.tfevents.1").write_bytes(file_of("loss", 3) + record(event.SerializeToString()))
    assert [tag for _, tag in read_folder(tmp_path).curves] == ["loss"]
