"""The main job: how fast webhooks are taken, what an idle server costs, what a request costs beside its trainings."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure
from benchmarks.processes import bot, bot_environment, cpu_s, process, resident_bytes
from benchmarks.requests import training_s, until_finished
from benchmarks.webhooks import Load, flood, steady
from bot.cli.demo import set_stage
from bot.cli.local import free_port

FLOOD = 3_000
ROUNDS = 7
RATE, RATE_S = 200, 10
IDLE_S = 20.0
REQUESTS = 3
# the pull request of the demo that changes nothing: what looks worse would be trained a second time
HARMLESS = 3
COMMAND = "/benchmark digits-resnet set.epochs=2"


def measure() -> Iterator[Figure]:
    """All figures of the area."""
    yield from _webhooks()
    yield from _idle()
    yield from _overhead()


# ---- webhooks -------------------------------------------------------------------------------------------------------


def _webhooks() -> Iterator[Figure]:
    """Both servers as processes of their own; rounds alternate, and the median of the ratios is taken."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder), "--no-worker") as (ours, _), _bare() as bare:
        asyncio.run(flood(ours, 0, 300))
        asyncio.run(flood(bare, 0, 300))
        ratios, rates = [], []
        for at in range(1, ROUNDS + 1):
            mine, peer = asyncio.run(flood(ours, at * 10_000, FLOOD)), asyncio.run(flood(bare, at * 10_000, FLOOD))
            ratios.append(mine.per_second / peer.per_second)
            rates.append((mine.per_second, peer.per_second))
        held: Load = asyncio.run(steady(ours, 1_000_000, RATE, RATE_S))
    told = ", ".join(f"{mine:.0f} and {peer:.0f}" for mine, peer in rates)
    yield Figure(
        name="main.webhook_rate_ratio",
        value=median(ratios),
        unit="x",
        bar=0.25,
        at_most=False,
        how=f"{FLOOD} deliveries on 16 connections, {ROUNDS} rounds, ours and a bare app in turn: {told} a second",
    )
    yield Figure(
        name="main.webhook_p99",
        value=1000 * held.percentile(0.99),
        unit="ms",
        bar=100,
        how=f"{RATE} deliveries a second for {RATE_S} s, 202 only after the commit; median "
        f"{1000 * held.percentile(0.5):.1f} ms",
    )


@contextmanager
def _server(folder: Path, *words: str) -> Iterator[tuple[int, int]]:
    """Port and process id of `benchbot serve`, whose GitHub is away."""
    port = free_port()
    with bot(bot_environment(folder, port), "serve", *words) as pid:
        yield port, pid


@contextmanager
def _bare() -> Iterator[int]:
    port = free_port()
    with process([sys.executable, "-m", "benchmarks.webhooks", str(port)], os.environ, port):
        yield port


# ---- an idle server -------------------------------------------------------------------------------------------------


def _idle() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as (_, pid):
        time.sleep(5)
        before = cpu_s(pid)
        time.sleep(IDLE_S)
        share = 100 * (cpu_s(pid) - before) / IDLE_S
        megabytes = resident_bytes(pid) / 1e6
    how = f"benchbot serve with its workers and an empty database, {IDLE_S:.0f} s"
    yield Figure(name="main.idle_memory", value=megabytes, unit="MB", bar=220, how=how)
    yield Figure(name="main.idle_cpu", value=share, unit="%", bar=2, how=how + ", of one core")


# ---- a request ------------------------------------------------------------------------------------------------------


def _overhead() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        cold, *warm = asyncio.run(_requests(Path(folder)))
    told = ", ".join(f"{seconds:.2f}" for seconds in warm)
    yield Figure(
        name="main.request_overhead",
        value=max(warm),
        unit="s",
        bar=5,
        how=f"comment to final comment minus the trainings' own time, local backend, 4 runs, the slowest of {told} s; "
        f"the first one, which fills the caches, took {cold:.1f} s",
    )


async def _requests(folder: Path) -> list[float]:
    """The overhead of one request after the other, the first with cold environments."""
    seconds = []
    async with set_stage(folder) as on:
        for count in range(1, REQUESTS + 2):
            begun = time.perf_counter()
            await asyncio.to_thread(on.maintainer.comment, HARMLESS, COMMAND)
            await until_finished(on, count)
            took = time.perf_counter() - begun
            seconds.append(took - await training_s(on))
    return seconds
