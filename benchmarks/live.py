"""Looking at a run while it trains: how soon a point is seen, what thinning costs, and that nothing is lost."""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from aiohttp import ClientSession, ClientTimeout

from benchmarks.eventfiles import write_scalars
from benchmarks.figures import Figure
from benchmarks.looked_at import logs_of, rows_of_runs
from benchmarks.processes import bot, bot_environment, cpu_s
from bot.cli.local import free_port
from bot.measure.curves import downsample
from bot.measure.readers import read_folder
from bot.measure.readers.following import Follower

CHUNK, CHUNKS, EVERY_S = 200, 100, 0.1
MILLION = 1_000_000
SHOWN = 1_000


def measure() -> Iterator[Figure]:
    """All figures of the area."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_scalars(folder / "source" / "events.out.tfevents.1", ["loss"], CHUNK * CHUNKS).read_bytes()
        yield from _seen(folder, source)
        yield from _thinned(folder)


# ---- from the flush to the page -------------------------------------------------------------------------------------


def _seen(folder: Path, source: bytes) -> Iterator[Figure]:
    delays, used_s = asyncio.run(_watched(folder, source))
    how = f"{CHUNKS} chunks of {CHUNK} points, one each {1000 * EVERY_S:.0f} ms, flushed to the artifacts' folder of "
    how += "benchbot serve, until a reader of the run's events has the last of each; median "
    yield Figure(
        name="live.flush_to_visible_p95",
        value=1000 * float(np.quantile(delays, 0.95)),
        unit="ms",
        bar=250,
        how=f"{how}{1000 * median(delays):.0f} ms, longest {1000 * max(delays):.0f} ms",
    )
    yield Figure(
        name="live.server_cpu",
        value=100 * used_s / (CHUNKS * EVERY_S),
        unit="%",
        how="of one core, while one page follows the run",
    )
    yield Figure(
        name="live.followed_unequal",
        value=_unequal(folder / "followed", source),
        unit="points",
        bar=0,
        how="of those chunks, each cut in the middle of a record, that are not those of the whole file",
    )


async def _watched(folder: Path, source: bytes) -> tuple[list[float], float]:
    """Seconds until each chunk was seen, and the CPU seconds of the server meanwhile."""
    environment = bot_environment(folder, free_port())
    run = (await rows_of_runs(environment, 1))[0]
    file = logs_of(environment, run) / "events.out.tfevents.1"
    file.parent.mkdir(parents=True)
    with bot(environment, "serve", "--no-worker") as pid:
        address = f"http://127.0.0.1:{environment['BENCHBOT_PORT']}/runs/{run}/events"
        async with ClientSession(timeout=ClientTimeout(total=120)) as session, session.get(address) as answer:
            answer.raise_for_status()
            flushed: list[float] = []
            before = cpu_s(pid)
            writing = asyncio.create_task(_write(file, source, flushed))
            delays: list[float] = []
            async for line in answer.content:
                if not line.startswith(b"data: ["):
                    continue
                newest = json.loads(line[6:])[0]["points"][-1][0]
                while len(delays) < len(flushed) and newest >= (len(delays) + 1) * CHUNK - 1:
                    delays.append(time.perf_counter() - flushed[len(delays)])
                if len(delays) == CHUNKS:
                    break
            await writing
            return delays, cpu_s(pid) - before


async def _write(file: Path, source: bytes, flushed: list[float]) -> None:
    """Append chunk after chunk, the last record of each in two halves."""
    ends = _ends(source)
    with file.open("ab", buffering=0) as out:
        for start, end in zip([0, *ends], ends, strict=False):
            out.write(source[start : end - 20])
            out.write(source[end - 20 : end])
            flushed.append(time.perf_counter())
            await asyncio.sleep(EVERY_S)


def _ends(source: bytes) -> list[int]:
    """Where each chunk ends; the record of the version comes before the first one."""
    ends, place = [], 0
    while place < len(source):
        place += 16 + int.from_bytes(source[place : place + 8], "little")
        ends.append(place)
    return ends[CHUNK::CHUNK]


def _unequal(folder: Path, source: bytes) -> int:
    folder.mkdir()
    follower, file, seen = Follower(folder), folder / "events.out.tfevents.1", None
    ends = _ends(source)
    with file.open("ab", buffering=0) as out:
        for start, end in zip(
            [0, *(end - 20 for end in ends)], [*(end - 20 for end in ends), len(source)], strict=True
        ):
            out.write(source[start:end])
            seen = follower.poll() or seen
    if seen is None:
        return CHUNK * CHUNKS
    mine, whole = seen.curves[".", "loss"], read_folder(folder).curves[".", "loss"]
    if len(mine) != len(whole):
        return abs(len(mine) - len(whole))
    return int(np.count_nonzero((mine.steps != whole.steps) | (mine.values != whole.values)))


# ---- what pages are shown of long curves ----------------------------------------------------------------------------


def _thinned(folder: Path) -> Iterator[Figure]:
    write_scalars(folder / "long" / "events.out.tfevents.1", ["loss"], MILLION)
    curve = read_folder(folder / "long").curves[".", "loss"]
    seconds = []
    for _ in range(5):
        before = time.process_time()
        thin = downsample(curve, SHOWN)
        seconds.append(time.process_time() - before)
    how = f"a million points to {len(thin)}, median of 5"
    yield Figure(name="live.thinning", value=1000 * median(seconds), unit="ms", how=how)
    lost = sum(
        (float(whole) != float(shown))
        for whole, shown in (
            (curve.values.min(), thin.values.min()),
            (curve.values.max(), thin.values.max()),
            (curve.values[0], thin.values[0]),
            (curve.values[-1], thin.values[-1]),
        )
    )
    how = "of lowest, highest, first and last value of that curve are not in what is shown"
    yield Figure(name="live.extremes_lost", value=lost, unit="values", bar=0, how=how)
