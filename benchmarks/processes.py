"""Processes that are measured: started for a figure, asked what they used, and ended with it."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from benchmarks.webhooks import SECRET

T = TypeVar("T")


@contextmanager
def process(words: list[str], environment: Mapping[str, str], port: int = 0) -> Iterator[int]:
    """A process by its id, as soon as it listens on `port`; with 0 it listens nowhere."""
    started = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if port:
            _wait_for(port, words)
        yield started.pid
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def bot(environment: Mapping[str, str], *words: str) -> Iterator[int]:
    """`benchbot` with some words by its process id; `serve` as soon as it listens."""
    port = int(environment["BENCHBOT_PORT"]) if words[0] == "serve" else 0
    with process([sys.executable, "-m", "bot", *words], environment, port) as pid:
        yield pid


@asynccontextmanager
async def in_thread(context: AbstractContextManager[T]) -> AsyncIterator[T]:
    """The same for a loop that must go on serving meanwhile."""
    entered = await asyncio.to_thread(context.__enter__)
    try:
        yield entered
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


def bot_environment(folder: Path, port: int) -> dict[str, str]:
    """Variables for a bot below a folder, with the benchbot.toml that lies there; its GitHub is away."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.TraditionalOpenSSL
    return {
        **os.environ,
        "BENCHBOT_CONFIG": str(folder / "benchbot.toml"),
        "BENCHBOT_DATA_FOLDER": str(folder / "data"),
        "BENCHBOT_PORT": str(port),
        "BENCHBOT_GITHUB_APP_ID": "1",
        "BENCHBOT_GITHUB_PRIVATE_KEY": key.private_bytes(
            serialization.Encoding.PEM, kind, serialization.NoEncryption()
        ).decode(),
        "BENCHBOT_GITHUB_WEBHOOK_SECRET": SECRET,
        "BENCHBOT_GITHUB_API_URL": "http://127.0.0.1:9",
        "BENCHBOT_GITHUB_WEB_URL": "http://127.0.0.1:9",
    }


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process has used in all its threads."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> int:
    """How many processes it has begun that still run."""
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def resident_bytes(pid: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _wait_for(port: int, words: list[str]) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"{' '.join(words)} does not listen")
