"""The main job: how fast webhooks are taken, what an idle server costs, what a request costs beside its trainings."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import select

from benchmarks.figures import Figure
from benchmarks.webhooks import SECRET, Load, flood, steady
from bot.cli.demo import Stage, finished, set_stage
from bot.cli.local import free_port
from bot.store.tables import Lease, Request, Run

FLOOD = 3_000
ROUNDS = 7
RATE, RATE_S = 200, 10
IDLE_S = 20.0
REQUESTS = 3
COMMAND = "/benchmark digits-resnet set.epochs=2"


def measure() -> Iterator[Figure]:
    """All figures of the area."""
    yield from _webhooks()
    yield from _idle()
    yield from _overhead()


# ---- webhooks -------------------------------------------------------------------------------------------------------


def _webhooks() -> Iterator[Figure]:
    """Both servers as processes of their own; rounds alternate, and the median of the ratios is taken."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder), "--no-worker") as ours, _bare() as bare:
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
def _server(folder: Path, *words: str) -> Iterator[int]:
    port = free_port()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()
    environment = {
        **os.environ,
        "BENCHBOT_CONFIG": str(folder / "none.toml"),
        "BENCHBOT_DATA_FOLDER": str(folder / "data"),
        "BENCHBOT_PORT": str(port),
        "BENCHBOT_GITHUB_APP_ID": "1",
        "BENCHBOT_GITHUB_PRIVATE_KEY": pem,
        "BENCHBOT_GITHUB_WEBHOOK_SECRET": SECRET,
        "BENCHBOT_GITHUB_API_URL": "http://127.0.0.1:9",
        "BENCHBOT_GITHUB_WEB_URL": "http://127.0.0.1:9",
    }
    with _process([sys.executable, "-m", "bot", "serve", *words], environment, port):
        yield port


@contextmanager
def _bare() -> Iterator[int]:
    port = free_port()
    with _process([sys.executable, "-m", "benchmarks.webhooks", str(port)], dict(os.environ), port):
        yield port


PIDS: dict[int, int] = {}


@contextmanager
def _process(words: list[str], environment: dict[str, str], port: int) -> Iterator[None]:
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    PIDS[port] = process.pid
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            raise TimeoutError(f"{' '.join(words)} does not listen")
        yield
    finally:
        process.terminate()
        process.wait(20)


# ---- an idle server -------------------------------------------------------------------------------------------------


def _idle() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as port:
        time.sleep(5)
        pid = PIDS[port]
        before = _cpu_s(pid)
        time.sleep(IDLE_S)
        share = 100 * (_cpu_s(pid) - before) / IDLE_S
        megabytes = _resident_bytes(pid) / 1e6
    how = f"benchbot serve with its workers and an empty database, {IDLE_S:.0f} s"
    yield Figure(name="main.idle_memory", value=megabytes, unit="MB", bar=220, how=how)
    yield Figure(name="main.idle_cpu", value=share, unit="%", bar=2, how=how + ", of one core")


def _cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


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
            await asyncio.to_thread(on.maintainer.comment, 1, COMMAND)
            await _until(on, count)
            took = time.perf_counter() - begun
            seconds.append(took - await _training_s(on))
    return seconds


async def _until(on: Stage, count: int) -> None:
    """Returns when so many requests have had their last word."""
    for _ in range(12_000):
        # looking costs some milliseconds of the very process that is measured
        await asyncio.sleep(0.1)
        if len(await finished(on.bot)) >= count:
            return
    raise TimeoutError("the request did not end")


async def _training_s(on: Stage) -> float:
    """What the trainings of the newest request took themselves."""
    async with on.bot.services.database.read() as tx:
        newest = (await tx.scalars(select(Request.id).order_by(Request.created_at.desc()).limit(1))).one()
        mine = (await tx.scalars(select(Run).join(Lease).where(Lease.request_id == newest))).all()
    if any(run.state != "done" for run in mine):
        raise RuntimeError("a training failed; there is nothing to measure")
    return sum(run.seconds or 0.0 for run in mine)
