"""TensorBoard inside the bot: how soon a long run is open, how fast it answers then, and what it costs.

Asked over HTTP as TensorBoard's own page asks, of a `benchbot serve` that was started for it.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
from aiohttp import ClientSession, ClientTimeout, FormData

from benchmarks.eventfiles import write_scalars
from benchmarks.figures import Figure
from benchmarks.looked_at import REQUEST, logs_of, rows_of_runs
from benchmarks.processes import bot, bot_environment, children, resident_bytes
from bot.cli.local import free_port

MILLION = 1_000_000
WARM = 200
RUNS = 100


def measure() -> Iterator[Figure]:
    """All figures of the area."""
    with tempfile.TemporaryDirectory() as name:
        for area in (_long, _many):
            folder = Path(name) / area.__name__
            folder.mkdir()
            yield from asyncio.run(area(folder))


async def _long(folder: Path) -> list[Figure]:
    """One run with a million points of one tag."""
    async with _looked_at(folder, 1, ["loss"], MILLION) as (session, pid, runs):
        # the page itself first: TensorBoard's code is loaded once for all runs
        await _get(session, f"/runs/{runs[0]}/tensorboard/")
        before = resident_bytes(pid)
        begun = time.perf_counter()
        tags = await _get(session, f"/runs/{runs[0]}/tensorboard/data/plugin/timeseries/tags")
        (run,) = tags["scalars"]["runTagInfo"]
        shown = await _series(session, f"/runs/{runs[0]}/tensorboard", run)
        cold_s = time.perf_counter() - begun
        if len(shown) > 1_000 or max(point["step"] for point in shown) != MILLION - 1:
            raise RuntimeError(f"{len(shown)} points do not show the whole run")
        warm_s = []
        for _ in range(WARM):
            begun = time.perf_counter()
            await _series(session, f"/runs/{runs[0]}/tensorboard", run)
            warm_s.append(time.perf_counter() - begun)
        begun_for_it = children(pid)
        memory = (resident_bytes(pid) - before) / 1e6
    how = f"{WARM} times the series of that run over HTTP; median {1000 * float(np.median(warm_s)):.1f} ms"
    about = "a million points: its tags and its thinned series, over HTTP, for the first time"
    return [
        Figure(name="tensorboard.cold_open", value=cold_s, unit="s", bar=2, how=about),
        Figure(name="tensorboard.warm_p95", value=1000 * float(np.quantile(warm_s, 0.95)), unit="ms", bar=50, how=how),
        Figure(
            name="tensorboard.processes", value=begun_for_it, unit="", bar=0, how="of the server, while a run is open"
        ),
        Figure(name="tensorboard.memory", value=memory, unit="MB", how="more than before the run was opened"),
    ]


async def _many(folder: Path) -> list[Figure]:
    """A request with many runs, side by side."""
    async with _looked_at(folder, RUNS, ["loss", "accuracy"], 100) as (session, _, _):
        place = f"/requests/{REQUEST}/tensorboard"
        await _get(session, f"{place}/")
        begun = time.perf_counter()
        listed = await _get(session, f"{place}/data/runs")
        tags = await _get(session, f"{place}/data/plugin/timeseries/tags")
        listed_s = time.perf_counter() - begun
        if not len(listed) == len(tags["scalars"]["runTagInfo"]) == RUNS:
            raise RuntimeError(f"{len(listed)} runs of {RUNS} are listed")
    how = f"names and tags of {RUNS} runs with 2 tags of 100 points, over HTTP, for the first time"
    return [Figure(name="tensorboard.runs_listed", value=listed_s, unit="s", bar=1, how=how)]


@asynccontextmanager
async def _looked_at(
    folder: Path, count: int, tags: list[str], points: int
) -> AsyncIterator[tuple[ClientSession, int, tuple[str, ...]]]:
    """A server, its process id, and the runs of its one request."""
    environment = bot_environment(folder, free_port())
    runs = await rows_of_runs(environment, count)
    for run in runs:
        write_scalars(logs_of(environment, run) / "events.out.tfevents.1", tags, points)
    base = f"http://127.0.0.1:{environment['BENCHBOT_PORT']}"
    with bot(environment, "serve", "--no-worker") as pid:
        async with ClientSession(base, timeout=ClientTimeout(total=60)) as session:
            yield session, pid, runs


async def _get(session: ClientSession, path: str) -> dict[str, dict[str, dict[str, object]]]:
    async with session.get(path) as answer:
        answer.raise_for_status()
        text = await answer.text()
        return json.loads(text) if answer.content_type == "application/json" else {}


async def _series(session: ClientSession, place: str, run: str) -> list[dict[str, float]]:
    """The points of the tag, as the page of TensorBoard asks for them."""
    form = FormData()
    form.add_field("requests", json.dumps([{"plugin": "scalars", "tag": "loss"}]))
    async with session.post(f"{place}/data/plugin/timeseries/timeSeries", data=form()) as answer:
        answer.raise_for_status()
        (series,) = await answer.json()
        return series["runToSeries"][run]
