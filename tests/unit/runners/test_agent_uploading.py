"""Checkpoints on their way to a bucket: what has arrived is not sent again, and no fault costs results."""

import asyncio
import hashlib
import io
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from bot.artifacts.base import Seen
from runners.agent.uploading import BucketSilentError, NotTakenError, Upload
from tests.harness.deposit import Deposit, open_deposit
from tests.harness.storage import QUANTUM, WEEK_S, CloudStorage
from tests.unit.runners.conftest import Scene

DATA = bytes(range(256)) * 4_096  # 1 MiB
LARGE = 20 * 1024 * 1024
WRITE = f"""head -c {LARGE} /dev/zero | tr '\\0' 'w' > "$BENCHBOT_CHECKPOINTS/last.pt" """


async def test_a_large_file_whose_connection_is_cut_in_the_middle(scene: Scene, tmp_path: Path) -> None:
    """The real agent asks how far it had come, and goes on from there; its credential stays with the bot."""
    storage = CloudStorage(lambda: 0.0)
    await storage.start()
    async with ClientSession() as session:
        bucket = storage.bucket(tmp_path, session)
        address = bucket.address("r1", "o1", "last.pt")
        begun: list[str] = []

        async def elsewhere(item: Mapping[str, Any]) -> str | None:
            if await bucket.look(address):
                return None
            begun[:] = begun or [await bucket.begin(address, Seen(item["size"], item["md5"]))]
            return begun[0]

        scene.server.elsewhere = elsewhere
        storage.faults.cut_after = 5 * QUANTUM + 123
        scene.plan(scene.run("r1", WRITE))
        await scene.finish()
    await storage.stop()
    assert scene.server.finished == {"outcome": "done", "sentence": ""}
    (kept,) = storage.objects.values()
    assert hashlib.sha256(kept.data).hexdigest() == scene.server.manifests["r1"]["checkpoints/last.pt"]
    sent = [size for _, size in storage.puts]
    assert len(sent) == 4, "a piece that was cut, and three for the rest"
    assert sum(sent[1:]) == LARGE - sent[0] // QUANTUM * QUANTUM
    assert ("r1", "checkpoints/last.pt.part") not in scene.server.files, "nothing of it came to the bot"
    assert storage.violations == []


@dataclass
class Target:
    """A session to send to."""

    storage: CloudStorage
    url: str
    now: float = 0.0

    def upload(self, data: bytes = DATA, size: int = len(DATA), patience_s: float = 5.0) -> None:
        """Send `data` as a file of `size` bytes. For a thread."""
        Upload(self.url, io.BytesIO(data), size, threading.Event()).run(patience_s)


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[Target]:
    made = Target(CloudStorage(lambda: made.now), "")
    await made.storage.start()
    async with ClientSession() as session:
        bucket = made.storage.bucket(tmp_path, session)
        made.url = await bucket.begin(bucket.address("r1", "o1", "x"), Seen(len(DATA), hashlib.md5(DATA).hexdigest()))
        yield made
    await made.storage.stop()


async def test_busy_answers_and_cuts_are_waited_out(target: Target) -> None:
    target.storage.faults.busy = 2
    target.storage.faults.cut_after = QUANTUM + 1
    await asyncio.to_thread(target.upload)
    assert [kept.data for kept in target.storage.objects.values()] == [DATA]
    await asyncio.to_thread(target.upload)  # an answer that was lost: it is there already


async def test_what_the_bucket_does_not_take(target: Target) -> None:
    for data in (b"x" * len(DATA), DATA, b"short"):
        with pytest.raises(NotTakenError):
            await asyncio.to_thread(target.upload, data)
    target.now = WEEK_S + 1
    with pytest.raises(NotTakenError, match="4"):
        await asyncio.to_thread(target.upload)
    for url in ("nonsense", "ftp://x/y"):
        with pytest.raises(NotTakenError):
            Upload(url, io.BytesIO(), 0, threading.Event())


async def test_a_file_that_became_shorter_meanwhile(target: Target) -> None:
    with pytest.raises(NotTakenError, match="shorter"):
        await asyncio.to_thread(target.upload, b"")


async def test_a_silent_bucket_is_given_up(target: Target) -> None:
    await target.storage.stop()
    with pytest.raises(BucketSilentError):
        await asyncio.to_thread(target.upload, DATA, len(DATA), 0.05)


# ---- the agent's whole way of shipping, before the real web application ---------------------------------------------


@pytest.fixture
async def deposit(tmp_path: Path) -> AsyncIterator[Deposit]:
    async with open_deposit(tmp_path, bucket=True) as made:
        yield made


async def test_results_arrive_without_a_bucket_that_stays_away(deposit: Deposit) -> None:
    """Between runs it is tried again later; at the very end the numbers count more than the weights."""
    assert deposit.storage
    deposit.write("log.txt", b"training\n")
    deposit.write("checkpoints/last.pt", DATA)
    deposit.storage.faults.deaf = True
    assert not await deposit.ship(patience_s=0.05)
    assert await deposit.ship(patience_s=0.05, last=True)
    rows = await deposit.artifacts()
    assert [(path, bool(row.sha256)) for path, row in rows.items()] == [("log.txt", True)]
    deposit.storage.faults.deaf = False
    assert await deposit.ship()
    assert await deposit.download("checkpoints/last.pt") == DATA


async def test_an_agent_that_was_started_again_goes_on(deposit: Deposit) -> None:
    """It gets the address of the same upload, and sends only what is missing."""
    assert deposit.storage
    deposit.write("checkpoints/last.pt", DATA)
    deposit.storage.faults.cut_after = 2 * QUANTUM
    deposit.storage.faults.then_deaf = True
    assert not await deposit.ship(patience_s=0.05)
    deposit.storage.faults.deaf = False
    assert await deposit.ship()
    assert [size for _, size in deposit.storage.puts[1:]] == [len(DATA) - 2 * QUANTUM]
    assert len(await deposit.objects()) == 1


async def test_an_upload_whose_session_ran_out_gets_another_one(deposit: Deposit) -> None:
    assert deposit.storage
    deposit.write("checkpoints/last.pt", DATA)
    deposit.storage.faults.deaf = True
    assert not await deposit.ship(patience_s=0.05)
    deposit.storage.faults.deaf = False
    deposit.now += WEEK_S + 1
    assert await deposit.ship()
    assert await deposit.download("checkpoints/last.pt") == DATA
    await deposit.work()
    assert sorted(one.state for one in await deposit.objects()) == ["gone", "kept"]


async def test_the_bot_asks_the_bucket_again_later(deposit: Deposit) -> None:
    assert deposit.storage
    deposit.write("checkpoints/last.pt", DATA)
    deposit.storage.faults.busy = 2
    assert await deposit.ship()
    assert await deposit.download("checkpoints/last.pt") == DATA
