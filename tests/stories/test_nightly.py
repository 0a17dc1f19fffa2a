"""What runs by the clock: the default branch is measured every night, and its numbers are remembered."""

from datetime import UTC, datetime

from sqlalchemy import select

from bot.store.history import positions_of
from bot.store.memory import Branch, Schedule
from tests.harness.agent import Training
from tests.harness.land import CONFIG
from tests.harness.nights import NIGHTLY, merges, night, samples, schedule
from tests.harness.story import story, told
from tests.harness.world import World


async def _schedules(world: World) -> dict[str, Schedule]:
    async with world.services.database.read() as tx:
        return {row.name: row for row in await tx.scalars(select(Schedule))}


@story
async def test_a_night_is_measured_and_remembered(world: World) -> None:
    """Although nobody asked: on the tip, with the samples of both seeds of each metric."""
    tip = await schedule(world)
    await night(world)
    (request,) = await world.requests()
    assert (request.kind, request.requester, request.head_sha) == ("schedule", "schedule nightly", tip)
    assert [(name, sha) for name, sha, _ in await samples(world)] == [
        ("accuracy", tip),
        ("accuracy", tip),
        ("step_time", tip),
        ("step_time", tip),
    ]


@told
async def test_every_night_it_is_the_commit_that_is_the_tip_then(world: World) -> None:
    first = await schedule(world)
    await night(world)
    second = await merges(world, {"train.py": b"print('better')\n"})
    await night(world)
    assert [request.head_sha for request in await world.requests()] == [first, second]
    assert [sha for _, sha, _ in await samples(world, "accuracy")] == [first, first, second, second]


@told
async def test_it_runs_at_the_wall_clock_of_its_zone(world: World) -> None:
    await schedule(world)
    due = (await _schedules(world))["nightly"].due_at
    assert due is not None
    # half past two in Berlin in September
    assert datetime.fromtimestamp(due, UTC).strftime("%H:%M") == "00:30"


@told
async def test_nights_that_were_missed_are_made_up_for_once(world: World) -> None:
    """The bot was off for four days."""
    await schedule(world)
    await night(world, days=4)
    assert len(await world.requests()) == 1
    await night(world)
    assert len(await world.requests()) == 2


@told
async def test_a_pull_request_never_writes_history(world: World) -> None:
    """S09: not even with the runs of its base, on whose machine its own code ran."""
    await schedule(world)
    await world.says("maya", "/benchmark resnet50")
    world.read()
    assert await samples(world) == []


@told
async def test_what_a_benchmark_is_about_has_not_changed(world: World) -> None:
    """The night is skipped, and why is kept."""
    config = CONFIG.replace(b"    groups: [classification]\n", b"    groups: [classification]\n    paths: [train.py]\n")
    await merges(world, {".github/benchmark.yml": config + NIGHTLY})
    await night(world)
    await merges(world, {"README.md": b"words\n"})
    await night(world)
    assert len(await world.requests()) == 1
    assert (await _schedules(world))["nightly"].said.startswith("Nothing that its benchmarks are about has changed")
    await merges(world, {"train.py": b"print('other')\n"})
    await night(world)
    assert len(await world.requests()) == 2


@told
async def test_a_schedule_that_is_taken_out_of_the_file_runs_no_more(world: World) -> None:
    await schedule(world)
    await schedule(world, b"")
    await night(world, days=2)
    assert await world.requests() == []
    assert (await _schedules(world))["nightly"].state == "gone"


@told
async def test_a_file_that_cannot_be_read_leaves_the_schedule_and_says_so(world: World) -> None:
    await schedule(world)
    await merges(world, {".github/benchmark.yml": b"version: 1\nbenchmark: {}\n"})
    await night(world)
    assert await world.requests() == []
    assert "line 1: The key `benchmarks` is missing" in (await _schedules(world))["nightly"].said
    async with world.services.database.read() as tx:
        assert "The key `benchmarks` is missing" in (await tx.scalars(select(Branch.trouble))).one()


@told
async def test_a_training_that_fails_at_night_leaves_no_sample(world: World) -> None:
    world.script = lambda commit, seed: Training(reason="user_error", exit=1, sentence="status 1")
    await schedule(world)
    await night(world)
    (request,) = await world.requests()
    assert request.verdict == "failed"
    assert await samples(world) == []


@told
async def test_a_forced_push_takes_commits_out_of_the_history(world: World) -> None:
    first = await schedule(world)
    await night(world)
    lost = await merges(world, {"train.py": b"print('lost')\n"})
    async with world.services.database.read() as tx:
        before = await positions_of(tx, world.repository.id)
    assert before[lost] == before[first] + 1
    await world.sandbox.move_branch(world.repository, "maya", "main", first)
    await world.settle()
    async with world.services.database.read() as tx:
        after = await positions_of(tx, world.repository.id)
    assert lost not in after
    assert after[first] == before[first]


ON_PUSH = b"on_push: {benchmarks: resnet50, seeds: 1}\n"


@told
async def test_each_push_is_measured_where_the_file_says_so(world: World) -> None:
    """The push that brings the line is the first one after which something can be asked."""
    await schedule(world, ON_PUSH)
    first = await merges(world, {"train.py": b"print('first')\n"})
    second = await merges(world, {"train.py": b"print('second')\n"})
    assert [(r.kind, r.requester, r.head_sha) for r in await world.requests()][-2:] == [
        ("push", "push", first),
        ("push", "push", second),
    ]
    assert [sha for _, sha, _ in await samples(world, "accuracy")][-2:] == [first, second]


@told
async def test_a_push_to_another_branch_is_nobodys_business(world: World) -> None:
    await schedule(world, ON_PUSH)
    before = len(await world.requests())
    await world.pushes("ada")
    await world.settle()
    assert len(await world.requests()) == before


@told
async def test_a_release_is_measured_once(world: World) -> None:
    tip = await schedule(world, b'on_release: {benchmarks: "@classification", seeds: 1}\n')
    release = await world.sandbox.add_release(world.repository, "v1.0", tip)
    await world.settle()
    assert len(await world.requests()) == 1
    # a draft that is published for a second time has a second webhook, with the same release in it
    told_again = world.sandbox.shapes.release(world.repository, release)
    await world.hook("release", "maya", action="published", release=told_again)
    (request,) = await world.requests()
    assert (request.kind, request.requester, request.head_sha) == ("release", "release v1.0", tip)
