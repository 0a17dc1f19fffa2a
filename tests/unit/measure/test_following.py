"""A folder that is followed while a training writes it shows what is read in the end."""

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.measure.readers import read_folder
from bot.measure.readers.following import Follower
from bot.measure.reading import Reading, describe
from tests.unit.measure.records import file_of, record, scalar

RELAXED = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _points(reading: Reading | None) -> dict[tuple[str, str], list[tuple[int, float]]]:
    assert reading is not None
    return {
        key: list(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
        for key, curve in reading.curves.items()
    }


@given(st.lists(st.integers(0, 1500), max_size=6), st.lists(st.integers(0, 1500), max_size=6))
@RELAXED
def test_what_was_followed_is_what_was_shipped(tmp_path: Path, first: list[int], second: list[int]) -> None:
    """Two files grow in turn, cut anywhere; a third of rows grows beside them."""
    folder = tmp_path / f"{first}{second}".replace(" ", "")[:200]
    folder.mkdir(exist_ok=True)
    follower = Follower(folder)
    written = {"train/events.out.tfevents.1": file_of("loss", 40), "events.out.tfevents.2": file_of("accuracy", 40)}
    (folder / "train").mkdir(exist_ok=True)
    for name, cuts in zip(written, (first, second), strict=True):
        file = folder / name
        ends = [*sorted(cut for cut in cuts if cut < len(written[name])), len(written[name])]
        for count, end in enumerate(ends):
            file.write_bytes(written[name][:end])
            (folder / "rows.jsonl").write_text(json.dumps({"step": count, "lr": 0.1}) + "\n")
            follower.poll()
            assert follower.poll() is None
    (folder / "rows.jsonl").write_text('{"step": 1, "lr": 0.25}\n{"step": 2, "lr": 0.125}\n')
    followed = follower.poll()
    assert followed is not None
    assert _points(followed) == _points(read_folder(folder))
    assert describe(followed) == describe(read_folder(folder))


def test_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "logs")
    assert follower.poll() is None
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.out.tfevents.1").write_bytes(file_of("loss", 2))
    assert _points(follower.poll()) == {(".", "loss"): [(0, 0.0), (1, 0.5)]}


def test_a_file_that_is_begun_anew(tmp_path: Path) -> None:
    """A script that opens its log for writing a second time; the new file may be longer than the old one was."""
    file = tmp_path / "events.out.tfevents.1"
    follower = Follower(tmp_path)
    file.write_bytes(file_of("loss", 3))
    assert len(_points(follower.poll())[".", "loss"]) == 3
    file.write_bytes(file_of("accuracy", 5, wall_time=2000.0))
    assert list(_points(follower.poll())) == [(".", "accuracy")]


def test_what_was_seen_does_not_change_when_more_comes(tmp_path: Path) -> None:
    """Whoever still sends the last reading must not find other points in it."""
    file = tmp_path / "events.out.tfevents.1"
    follower = Follower(tmp_path)
    file.write_bytes(file_of("loss", 3))
    before = follower.poll()
    with file.open("ab") as end:
        end.write(record(scalar("loss", 3, 9.0)))
    assert len(_points(follower.poll())[".", "loss"]) == 4
    assert len(_points(before)[".", "loss"]) == 3
