"""Where files are kept makes no difference to the agent and to people: the same suite with and without a bucket."""

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.deposit import Deposit, open_deposit

WEIGHTS = bytes(range(256)) * 5_000


@pytest.fixture(params=["local", "gcs"])
async def deposit(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Deposit]:
    async with open_deposit(tmp_path, bucket=request.param == "gcs") as made:
        yield made


async def test_everything_arrives_and_can_be_had_again(deposit: Deposit) -> None:
    files = {
        "log.txt": b"training\n",
        "logs/metrics.jsonl": b'{"step": 1}\n',
        "logs/empty": b"",
        "checkpoints/last.pt": WEIGHTS,
        "checkpoints/deep/zwölf %2F#?.pt": b"twelve",
        "checkpoints/empty.pt": b"",
    }
    for path, data in files.items():
        deposit.write(path, data)
    assert await deposit.ship()
    rows = await deposit.artifacts()
    assert {path: (row.size, row.sha256) for path, row in rows.items()} == {
        path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()
    }
    await deposit.end()
    for path, data in files.items():
        assert await deposit.download(path.replace("%", "%25").replace("#", "%23").replace("?", "%3F")) == data
    folder = await deposit.services.logs_of("r1")
    assert (folder / "logs/metrics.jsonl").read_bytes() == b'{"step": 1}\n'


async def test_what_grows_is_read_while_it_grows(deposit: Deposit) -> None:
    deposit.write("log.txt", b"one\n")
    await deposit.grow("log.txt")
    assert (await deposit.get("/runs/r1/log"))[1] == b"one\n"
    deposit.write("log.txt", b"one\ntwo\n")
    assert await deposit.ship()
    assert (await deposit.get("/runs/r1/log"))[1] == b"one\ntwo\n"


async def test_an_older_checkpoint_stays_until_the_newer_one_has_arrived(deposit: Deposit) -> None:
    deposit.write("checkpoints/last.pt", b"old")
    assert await deposit.ship(at_its_end=False)
    deposit.write("checkpoints/last.pt", b"newer")
    entry = {"path": "checkpoints/last.pt", "sent_as": "checkpoints/last.pt.part", "size": 5}
    hashes = {"sha256": hashlib.sha256(b"newer").hexdigest(), "md5": hashlib.md5(b"newer").hexdigest()}
    answer = await deposit.post("runs/r1/manifest", {"files": [entry | hashes], "complete": False})
    assert len(answer["wanted"]) == 1
    assert await deposit.download("checkpoints/last.pt") == b"old"
    assert await deposit.ship(at_its_end=False)
    assert await deposit.download("checkpoints/last.pt") == b"newer"
    await deposit.work()
    if deposit.storage:
        assert deposit.storage.names() == ["checkpoints/last.pt"]


async def test_checkpoints_that_the_run_dropped_are_dropped(deposit: Deposit) -> None:
    deposit.write("checkpoints/1.pt", b"one")
    assert await deposit.ship(at_its_end=False)
    (deposit.outputs / "checkpoints/1.pt").unlink()
    deposit.write("checkpoints/2.pt", b"two")
    assert await deposit.ship()
    await deposit.work()
    assert set(await deposit.artifacts()) == {"checkpoints/2.pt"}
    assert (await deposit.get("/runs/r1/files/checkpoints/1.pt"))[0] == 404
    if deposit.storage:
        assert deposit.storage.names() == ["checkpoints/2.pt"]
    else:
        assert deposit.on_disk() == {"r1/checkpoints/2.pt": 3}


async def test_the_next_machine_gets_what_the_first_one_shipped(deposit: Deposit) -> None:
    deposit.write("log.txt", b"first machine\n")
    deposit.write("checkpoints/last.pt", WEIGHTS)
    assert await deposit.ship(at_its_end=False)
    link = deposit.shipment()._link
    for path, data in (("log.txt", b"first machine\n"), ("checkpoints/last.pt", WEIGHTS)):
        into = io.BytesIO()
        await asyncio.to_thread(link.get, "r1", path, into)
        assert into.getvalue() == data
    with pytest.raises(OSError, match="404"):
        await asyncio.to_thread(link.get, "r1", "checkpoints/other.pt", io.BytesIO())


async def test_a_second_manifest_asks_for_nothing_and_sends_nothing(deposit: Deposit) -> None:
    deposit.write("log.txt", b"training\n")
    deposit.write("checkpoints/last.pt", WEIGHTS)
    assert await deposit.ship()
    sent = list(deposit.storage.puts) if deposit.storage else []
    assert await deposit.ship()
    assert not deposit.storage or deposit.storage.puts == sent


async def test_another_lease_gets_nothing(deposit: Deposit) -> None:
    await deposit.post("runs/r9/manifest", {"files": []}, status=404)
    await deposit.end()
    await deposit.post("runs/r1/manifest", {"files": []}, status=401)


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "../x", "size": 1, "sha256": "0" * 64, "md5": "0" * 32},
        {"path": "x", "size": -1, "sha256": "0" * 64, "md5": "0" * 32},
        {"path": "x", "size": "1", "sha256": "0" * 64, "md5": "0" * 32},
        {"path": "x", "size": 1, "sha256": "0" * 64, "md5": "zz"},
        {"path": "x" * 401, "size": 1, "sha256": "0" * 64, "md5": "0" * 32},
        {"path": "\ud800", "size": 1, "sha256": "0" * 64, "md5": "0" * 32},
        "x",
    ],
)
async def test_a_manifest_that_makes_no_sense(deposit: Deposit, entry: object) -> None:
    await deposit.post("runs/r1/manifest", {"files": [entry]}, status=400)
