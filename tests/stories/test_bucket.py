"""Files of runs in a bucket: machines send them there, people get them from there, old ones go."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.sandbox import bare
from bot.workers import keeping
from tests.harness.agent import Training
from tests.harness.storage import CloudStorage
from tests.harness.story import told
from tests.harness.world import World

WEIGHTS = b"weights of the model" * 1_000


@asynccontextmanager
async def bucket(world: World) -> AsyncIterator[CloudStorage]:
    """The world with a bucket, which at its end has seen no wrong call."""
    storage = world.storage = CloudStorage(world.clock)
    await storage.start()
    await world.close_bot()
    await world.open_bot()
    try:
        yield storage
    finally:
        await storage.stop()
    assert storage.violations == []


def with_checkpoints(world: World) -> None:
    """Every training writes one that tells its commit."""
    world.script = lambda commit, seed: Training(
        values={"validation/accuracy": 90.0, "train/seconds_per_step": 0.1},
        files={"checkpoints/best.pt": WEIGHTS + commit.encode()},
    )


async def with_retention(world: World, retention: str) -> None:
    """What the base branch's configuration says of old files."""
    path = ".github/benchmark.yml"
    old = (await bare.blob(world.repository.folder, "main", path))[1]
    await world.sandbox.push(world.repository, "maya", "main", {path: old + f"retention: {retention}\n".encode()})


async def get(world: World, url: str, *, follow: bool = True) -> tuple[int, bytes]:
    """Status and body, as a browser gets them."""
    async with world.session.get(url, headers={"Accept": "text/html"}, allow_redirects=follow) as answer:
        return answer.status, await answer.read()


def on_disk(world: World) -> bytes:
    """All that the server's disk holds of runs."""
    return b"".join(file.read_bytes() for file in (world.folder / "bot").rglob("*") if file.is_file())


@told
async def test_results_with_links_that_work_and_no_weights_on_the_server(world: World) -> None:
    """Comment, pages, TensorBoard and downloads are as ever; each weight goes from the machine to the bucket alone."""
    with_checkpoints(world)
    async with bucket(world) as storage:
        await world.says("maya", "/benchmark resnet50 pairs=1")
        (results, *_) = world.read()
        assert "no change" in results or "inconclusive" in results
        links = set(re.findall(r'https?://[^\s)"<>#]+', results))
        downloads = [link for link in links if link.endswith(".pt")]
        assert len(downloads) == 2
        for link in links:
            assert (await get(world, link))[0] == 200, link
        weights = [(await get(world, link))[1] for link in downloads]
        assert WEIGHTS + world.pull.head_sha.encode() in weights
        assert all(one.startswith(WEIGHTS) for one in weights)
        assert [(await get(world, link, follow=False))[0] for link in downloads] == [302, 302]
        assert b"weights of the model" not in on_disk(world)

        await keeping.tidy(world.services)
        await world.settle()
        assert len(storage.objects) == 6, "log, metrics and checkpoint of two runs"
        for usage in await world.services.artifacts.usage():
            await world.services.artifacts.forget(usage.run_id)
        (request,) = await world.requests()
        status, said = await get(world, f"{request_url(world, request.id)}/tensorboard/data/runs")
        assert (status, len(json.loads(said))) == (200, 2), "read from copies that were made now"
        assert b"weights of the model" not in on_disk(world)


@told
async def test_weights_in_a_bucket_are_counted_by_their_headers(world: World) -> None:
    """Two files of one checkpoint: what they hold stands in record and comparison, and no weight was fetched."""
    shapes = {"head": [300, 100], "base": [200, 100]}

    def script(commit: str, seed: int) -> Training:
        rows, columns = shapes["head" if commit == world.pull.head_sha else "base"]
        end = rows * columns * 4
        # a header that is longer than what is asked for first
        about = {"w": {"dtype": "F32", "shape": [rows, columns], "data_offsets": [0, end]}}
        header = json.dumps({"__metadata__": {"notes": "x" * 70_000}, **about}).encode()
        part = len(header).to_bytes(8, "little") + header + bytes(end)
        names = [f"checkpoints/model-0000{number}-of-00002.safetensors" for number in (1, 2)]
        return Training(values={"validation/accuracy": 90.0}, files=dict.fromkeys(names, part))

    world.script = script
    path = ".github/benchmark.yml"
    old = (await bare.blob(world.repository.folder, "main", path))[1]
    new = old.replace(b"    metrics:\n", b"    metrics:\n      params: {builtin: weights_count, gate: true}\n")
    await world.sandbox.push(world.repository, "maya", "main", {path: new})
    async with bucket(world) as storage:
        await world.says("maya", "/benchmark bert pairs=1 vs=base")
        (results, *_) = world.read()
        assert "params" in results
        assert "60000" in results
        (request,) = await world.requests()
        records = json.loads((await get(world, f"{request_url(world, request.id)}/records.json"))[1])
        assert {(one["side"], one["weights_count"], one["weights_bytes"]) for one in records} == {
            ("head", 60_000, 240_000),
            ("base", 40_000, 160_000),
        }
        assert b'"dtype"' not in on_disk(world)
        assert max(storage.pieces) < 71_000


def request_url(world: World, request_id: str) -> str:
    return f"{world.services.settings.base_url}/requests/{request_id}"


async def _two_results(world: World) -> str:
    """The page of the first of two results, of which one may keep its weights."""
    with_checkpoints(world)
    await with_retention(world, "{good: 1, bad: 1}")
    for _ in range(2):
        await world.says("maya", "/benchmark resnet50 pairs=1")
        await world.settle()
    world.read()
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")  # goes on: nothing of it may be touched, and it counts not
    assert await keeping.retain(world.services) == 2
    assert await keeping.retain(world.services) == 0
    await world.settle()
    first, second, _ = await world.requests()
    assert b"removed on" not in (await get(world, request_url(world, second.id)))[1]
    page = (await get(world, request_url(world, first.id)))[1].decode()
    assert page.count("removed on 2026-09-21 by retention") == 2
    assert 'files/checkpoints/best.pt">checkpoints' not in page
    run = re.findall(r"/runs/[a-z2-7]{26}", page)[0]
    status, said = await get(world, f"{world.services.settings.base_url}{run}/files/checkpoints/best.pt")
    assert (status, b"removed on 2026-09-21 by retention" in said) == (410, True)
    world.hold_agents = False
    await world.settle()
    world.read()
    return page


@told
async def test_old_weights_go_from_the_bucket(world: World) -> None:
    """`retention` of the configuration is carried out, whatever runs meanwhile."""
    async with bucket(world) as storage:
        await _two_results(world)
        assert [name.rsplit("/", 1)[1] for name in storage.objects] == ["best.pt"] * 4


@told
async def test_old_weights_go_from_the_disk(world: World) -> None:
    """The same without a bucket: of three results two still have their weights."""
    await _two_results(world)
    assert len(list((world.folder / "bot" / "artifacts").rglob("best.pt"))) == 4
    assert len(list((world.folder / "bot" / "artifacts").rglob("log.txt"))) == 6
