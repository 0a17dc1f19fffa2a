"""Reading event files: our reader beside TensorBoard's EventAccumulator and tbparse, on the same files in one run.

Times are those of the process's own CPU time, on one core; every checksum is looked at.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import STORE_EVERYTHING_SIZE_GUIDANCE, EventAccumulator
from tensorboard.util import tensor_util

from benchmarks.eventfiles import write_scalars
from benchmarks.figures import Figure
from bot.measure.readers import read_folder
from bot.measure.reading import Reading

MILLION = 1_000_000
PAIRED, PAIRED_TENSORS = 150_000, 60_000
ROUNDS = 3
SMALL_FILES = 2_000

# the high-water mark of the address space: that of getrusage would count the parent's, too
_MEMORY = """
import re, sys
from pathlib import Path
from bot.measure.readers import read_folder, tfevents

def peak():
    return int(re.search("VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

before = peak()
reading = read_folder(Path(sys.argv[1]))
assert sum(map(len, reading.curves.values())) == int(sys.argv[2])
print(peak() - before)
"""


def measure() -> Iterator[Figure]:
    """All figures of the area."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from _alone(folder)
        yield from _beside(folder)


def _alone(folder: Path) -> Iterator[Figure]:
    one, fifty = folder / "one", folder / "fifty"
    write_scalars(one / "events.out.tfevents.1", ["loss"], MILLION)
    how = "a million points of one tag, both checksums of every record, median of 3"
    yield _speed("reader.points_per_second", one, MILLION, how, 500_000)
    write_scalars(fifty / "events.out.tfevents.1", [f"train/metric_{at}" for at in range(50)], 4_000)
    yield _speed("reader.points_per_second_50_tags", fifty, 200_000, "50 tags of unequal length in turn")
    for at in range(SMALL_FILES):
        write_scalars(folder / "small" / f"run{at}" / "events.out.tfevents.1", ["loss"], 100)
    yield _speed(
        "reader.points_per_second_small_files", folder / "small", SMALL_FILES * 100, "2000 files of 100 points"
    )
    words = [sys.executable, "-c", _MEMORY, str(one), str(MILLION)]
    peak = int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    how = "peak memory of a process above what it had after its imports, a million points read"
    yield Figure(name="reader.memory_of_a_million_points", value=peak / 1024, unit="MiB", bar=150, how=how)


def _speed(name: str, folder: Path, points: int, how: str, bar: float | None = None) -> Figure:
    def ours() -> None:
        found = sum(len(curve) for curve in read_folder(folder).curves.values())
        if found != points:
            raise RuntimeError(f"{found} points of {points} in {folder.name}")

    value = points / median(_cpu_s(ours) for _ in range(ROUNDS))
    return Figure(name=name, value=value, unit="1/s", bar=bar, at_most=False, how=how)


def _beside(folder: Path) -> Iterator[Figure]:
    """Rounds alternate, so that a machine that gets slower gets slower for all."""
    for kind, points, bar in (("plain", PAIRED, 15.0), ("tensor", PAIRED_TENSORS, 10.0)):
        place = folder / kind
        write_scalars(place / "events.out.tfevents.1", ["loss"], points, as_tensors=kind == "tensor")
        readers = {"ours": _ours, "EventAccumulator": _accumulator, "tbparse": _tbparse}
        seconds: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(ROUNDS):
            for name, read in readers.items():
                seconds[name].append(_cpu_s(lambda read=read, place=place: read(place)))  # type: ignore[misc]
        for peer, limit in (("EventAccumulator", bar), ("tbparse", None)):
            ratios = [theirs / mine for theirs, mine in zip(seconds[peer], seconds["ours"], strict=True)]
            yield Figure(
                name=f"reader.{kind}_scalars_against_{peer}",
                value=median(ratios),
                unit="x",
                bar=limit,
                at_most=False,
                how=f"{points} points, {ROUNDS} rounds: {', '.join(f'{ratio:.1f}' for ratio in ratios)}",
            )
        yield Figure(
            name=f"reader.{kind}_scalars_unequal",
            value=_unequal(_ours(place), _accumulator(place)),
            unit="points",
            bar=0,
            how="whose step, wall time or value is not that of EventAccumulator to the last bit",
        )


def _ours(folder: Path) -> Reading:
    return read_folder(folder)


def _accumulator(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance=STORE_EVERYTHING_SIZE_GUIDANCE).Reload()


def _tbparse(folder: Path) -> object:
    from tbparse import SummaryReader  # noqa: PLC0415, only this measurement needs it

    return SummaryReader(str(folder)).scalars


def _unequal(reading: Reading, peer: EventAccumulator) -> int:
    curve = reading.curves[".", "loss"]
    if "loss" in peer.Tags()["scalars"]:
        events = peer.Scalars("loss")
        values = [event.value for event in events]
    else:
        events = peer.Tensors("loss")
        values = [float(tensor_util.make_ndarray(event.tensor_proto)) for event in events]
    theirs = (
        np.array([event.step for event in events], dtype=np.int64),
        np.array([event.wall_time for event in events]),
        np.array(values),
    )
    if len(events) != len(curve):
        return max(len(events), len(curve))
    columns = zip((curve.steps, curve.wall_times, curve.values), theirs, strict=True)
    return int(np.count_nonzero(np.any([mine.view(np.int64) != its.view(np.int64) for mine, its in columns], axis=0)))


def _cpu_s(read: Callable[[], object]) -> float:
    before = time.process_time()
    read()
    return time.process_time() - before
