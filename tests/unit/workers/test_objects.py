"""What becomes of files after their run, with a bucket and without one."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from bot.store.leases import reset_runs
from bot.store.tables import Artifact, Incident, Lease, Object
from bot.web import manifests
from bot.workers import keeping
from tests.harness.deposit import Deposit, open_deposit
from tests.harness.storage import WEEK_S, CloudStorage

WEIGHTS = b"weights" * 50_000


@pytest.fixture
async def deposit(tmp_path: Path) -> AsyncIterator[Deposit]:
    async with open_deposit(tmp_path, bucket=True) as made:
        yield made


def storage_of(deposit: Deposit) -> CloudStorage:
    assert deposit.storage
    return deposit.storage


async def shipped(deposit: Deposit) -> None:
    """A run that has ended, with logs and a checkpoint."""
    deposit.write("log.txt", b"training\n")
    deposit.write("logs/metrics.jsonl", b'{"step": 1}\n')
    deposit.write("checkpoints/last.pt", WEIGHTS)
    assert await deposit.ship()
    await deposit.end()


async def moved(deposit: Deposit) -> None:
    """The same, and everything is in the bucket."""
    await shipped(deposit)
    assert await keeping.spool(deposit.services) == 2
    await deposit.work()


async def test_no_byte_of_a_checkpoint_comes_to_the_disk(deposit: Deposit) -> None:
    await moved(deposit)
    assert storage_of(deposit).names() == ["checkpoints/last.pt", "log.txt", "logs/metrics.jsonl"]
    assert deposit.on_disk() == {"r1/log.txt": 9, "r1/logs/metrics.jsonl": 12}
    assert {one.state for one in await deposit.objects()} == {"kept"}
    assert await keeping.spool(deposit.services) == 0
    status, said, _ = await deposit.get("/runs/r1/files/checkpoints/last.pt", follow=False)
    assert (status, said) == (302, b"")
    assert not storage_of(deposit).violations


async def test_copies_make_room_and_come_back(deposit: Deposit) -> None:
    await moved(deposit)
    services = deposit.services
    deposit.services = replace(services, settings=replace(services.settings, cache_bytes=20))
    await deposit.services.logs_of("r1")
    assert await keeping.make_room(deposit.services) == [], "somebody looks at it just now"
    deposit.now += 1_000
    assert await keeping.make_room(deposit.services) == ["r1"]
    assert deposit.on_disk() == {}
    folders = await asyncio.gather(*(services.logs_of("r1") for _ in range(4)))
    assert (folders[0] / "logs/metrics.jsonl").read_bytes() == b'{"step": 1}\n'
    assert deposit.on_disk() == {"r1/log.txt": 9, "r1/logs/metrics.jsonl": 12}
    assert (await deposit.get("/runs/r1/log"))[1] == b"training\n"


async def test_what_is_only_here_stays_here(deposit: Deposit) -> None:
    await shipped(deposit)
    deposit.services = replace(deposit.services, settings=replace(deposit.services.settings, cache_bytes=0))
    deposit.now += 10_000_000
    assert await keeping.make_room(deposit.services) == []
    await keeping.spool(deposit.services)
    await deposit.work()
    async with deposit.services.database.write() as tx:
        await tx.execute(update(Lease).values(state="running"))
    deposit.now += 10_000_000
    assert await keeping.make_room(deposit.services) == [], "its lease lives"


async def test_what_a_lost_machine_had_sent_is_moved_too(deposit: Deposit) -> None:
    """Its log has no hash yet, and the checkpoint that it had begun goes."""
    deposit.write("log.txt", b"half of the log")
    await deposit.grow("log.txt")
    entry = {"path": "checkpoints/last.pt", "sent_as": "checkpoints/last.pt.part", "size": len(WEIGHTS)}
    hashes = {"sha256": hashlib.sha256(WEIGHTS).hexdigest(), "md5": hashlib.md5(WEIGHTS).hexdigest()}
    answer = await deposit.post("runs/r1/manifest", {"files": [entry | hashes], "complete": False})
    await deposit.end("failed")
    await keeping.tidy(deposit.services)
    await deposit.work()
    assert storage_of(deposit).names() == ["log.txt"]
    (row,) = (await deposit.artifacts()).values()
    assert row.sha256 == hashlib.sha256(b"half of the log").hexdigest()
    assert sorted(one.state for one in await deposit.objects()) == ["gone", "kept"]
    async with deposit.session.put(answer["wanted"][0]["url"], data=b"", headers={"Content-Range": "bytes */1"}) as no:
        assert no.status == 499, "nobody can send it any more"


async def test_a_bucket_that_stays_away_costs_nothing(deposit: Deposit) -> None:
    await shipped(deposit)
    await keeping.spool(deposit.services)
    storage_of(deposit).faults.busy = 12
    await deposit.work()
    assert storage_of(deposit).names() == ["checkpoints/last.pt", "log.txt", "logs/metrics.jsonl"]


async def test_a_session_that_ran_out_is_begun_anew(deposit: Deposit) -> None:
    await shipped(deposit)
    await keeping.spool(deposit.services)
    (objects, *_) = [one for one in await deposit.objects() if one.state == "spooled"]
    bucket = deposit.services.bucket
    assert bucket
    data = (await deposit.services.artifacts.folder("r1") / objects.path).read_bytes()
    session = await bucket.begin(objects.address, manifests.Seen(len(data), hashlib.md5(data).hexdigest()))
    async with deposit.services.database.write() as tx:
        await tx.execute(update(Object).where(Object.id == objects.id).values(session=session, due_at=deposit.now))
    deposit.now += WEEK_S + 1
    await deposit.work()
    assert len(storage_of(deposit).names()) == 3


async def test_a_log_that_is_gone_from_the_disk_is_let_be(deposit: Deposit) -> None:
    await shipped(deposit)
    await keeping.spool(deposit.services)
    await deposit.services.artifacts.forget("r1")
    await deposit.work()
    assert storage_of(deposit).names() == ["checkpoints/last.pt"]
    assert await keeping.spool(deposit.services) == 0


async def test_a_log_that_outgrows_the_disk_goes_to_the_bucket(
    deposit: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning is read live; in the end readers get all of it."""
    monkeypatch.setattr(manifests, "SPOOL_FILE_BYTES", 1_000)
    monkeypatch.setattr("bot.web.agent_files.SPOOL_FILE_BYTES", 1_000)
    deposit.write("logs/events", b"x" * 900)
    await deposit.grow("logs/events")
    assert deposit.on_disk() == {"r1/logs/events": 900}
    deposit.write("logs/events", b"x" * 900 + b"y" * 900)
    assert await deposit.ship()
    assert deposit.on_disk() == {}
    folder = await deposit.services.logs_of("r1")
    assert (folder / "logs/events").read_bytes() == b"x" * 900 + b"y" * 900


async def test_all_logs_of_a_run_have_a_bound_on_the_disk(deposit: Deposit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "SPOOL_RUN_BYTES", 2_500)
    for number in range(5):
        deposit.write(f"logs/{number}", bytes([number]) * 1_000)
    assert await deposit.ship()
    assert sum(deposit.on_disk().values()) == 2_000
    assert len(storage_of(deposit).names()) == 3
    assert len(await deposit.artifacts()) == 5


async def test_more_files_than_one_answer_asks_for(deposit: Deposit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MOST_WANTED", 3)
    monkeypatch.setattr("runners.protocol.MOST_WANTED", 3)
    for number in range(20):
        deposit.write(f"checkpoints/{number}", bytes([number]))
    assert await deposit.ship()
    assert len(storage_of(deposit).names()) == 20


async def test_a_run_with_more_than_is_kept(deposit: Deposit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MAX_RUN_BYTES", 1_000)
    deposit.write("log.txt", b"training\n")
    deposit.write("checkpoints/a.pt", b"a" * 600)
    deposit.write("checkpoints/b.pt", b"b" * 600)
    assert await deposit.ship()
    assert set(await deposit.artifacts()) == {"checkpoints/a.pt", "log.txt"}


async def test_a_bucket_that_refuses_us_costs_no_results(deposit: Deposit) -> None:
    """The log arrives, the agent hears why the rest is not kept, the operator finds what to do."""
    storage_of(deposit).faults.forbidden = True
    deposit.write("log.txt", b"training\n")
    deposit.write("checkpoints/a.pt", b"a")
    deposit.write("checkpoints/b.pt", b"b")
    assert await deposit.ship()
    rows = await deposit.artifacts()
    assert [(path, bool(row.sha256)) for path, row in rows.items()] == [("log.txt", True)]
    async with deposit.services.database.read() as tx:
        (told,) = (await tx.scalars(select(Incident.traceback))).all()
    assert "storage.objects access" in told


async def test_an_operator_who_takes_the_bucket_away(deposit: Deposit) -> None:
    """What lies there waits; the pages say so instead of failing."""
    await moved(deposit)
    services = deposit.services
    deposit.services = replace(services, bucket=None)
    async with services.database.write() as tx:
        await tx.execute(update(Object).values(want="gone", poked=True))
    await deposit.work(10_000)
    assert {one.state for one in await deposit.objects()} == {"kept"}
    assert await keeping.spool(deposit.services) == 0
    deposit.services = services
    await deposit.work()
    assert storage_of(deposit).objects == {}
    assert {one.state for one in await deposit.objects()} == {"gone"}


async def test_a_page_while_the_bucket_is_away(deposit: Deposit) -> None:
    await moved(deposit)
    await deposit.services.artifacts.forget("r1")
    storage_of(deposit).faults.busy = 5
    status, said, _ = await deposit.get("/runs/r1/log")
    assert (status, b"Try again in a minute" in said) == (503, True)
    async with deposit.services.database.read() as tx:
        assert (await tx.scalars(select(Incident.id))).all() == []


async def test_objects_of_another_try_go(deposit: Deposit) -> None:
    await moved(deposit)
    async with deposit.services.database.write() as tx:
        for statement in reset_runs("l1", ["r1"]):
            await tx.execute(statement)
    await deposit.work()
    assert storage_of(deposit).objects == {}
    async with deposit.services.database.read() as tx:
        assert (await tx.scalars(select(Artifact.id))).all() == []
