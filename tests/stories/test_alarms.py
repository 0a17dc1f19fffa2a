"""The default branch becomes worse: one issue says so, with the commits it may be, until it is as good as before."""

from sqlalchemy import select

from bot.sandbox.issue_acts import Actor, Wanted
from bot.store.memory import Alarm
from tests.harness.agent import Training
from tests.harness.nights import merges, night, schedule
from tests.harness.story import story, told
from tests.harness.world import World

CODE = "train.py"


def _accuracy_is(world: World, by_commit: dict[str, float]) -> None:
    """The accuracy of each commit; 90 points where none is said."""

    def script(commit: str, seed: int) -> Training:
        accuracy = by_commit.get(commit, 90.0) + seed / 100
        return Training(values={"validation/accuracy": accuracy, "train/seconds_per_step": 0.1})

    world.script = script


async def _good_nights(world: World, count: int = 3) -> None:
    """Three nights on the same commit: six runs on three machines."""
    await schedule(world)
    for _ in range(count):
        await night(world)


async def _alarms(world: World) -> list[Alarm]:
    async with world.services.database.read() as tx:
        return list(await tx.scalars(select(Alarm).order_by(Alarm.opened_at)))


def _issues(world: World) -> list[tuple[str, bool, str]]:
    """Title, whether it is open, and text of each issue."""
    return [(issue.title, issue.open, issue.body) for issue in world.repository.issues.values()]


@story
async def test_a_night_is_worse(world: World) -> None:
    """An issue with both values, the range and the one pull request in it; better again, it is closed."""
    accuracies: dict[str, float] = {}
    _accuracy_is(world, accuracies)
    await _good_nights(world)
    bad = await merges(world, {CODE: b"print('worse')\n"})
    accuracies[bad] = 80.0
    await night(world)
    ((title, is_open, body),) = _issues(world)
    assert title == f"resnet50.accuracy: −10 pp since {bad[:7]}"
    assert is_open
    assert "regression: accuracy 80.0" in body
    assert "It is this commit:" in body
    assert "Change train.py" in body
    await merges(world, {CODE: b"print('good again')\n"})
    await night(world)
    ((title, is_open, body),) = _issues(world)
    assert not is_open
    assert "**Closed.**" in body


@told
async def test_it_stays_one_issue_while_it_stays_bad(world: World) -> None:
    """The next nights are compared with what it was before, not with the bad one, and say so in the same place."""
    accuracies: dict[str, float] = {}
    _accuracy_is(world, accuracies)
    await _good_nights(world)
    bad = await merges(world, {CODE: b"print('worse')\n"})
    later = await merges(world, {"README.md": b"words\n"})
    accuracies[bad] = accuracies[later] = 80.0
    await night(world)
    await night(world)
    still = await merges(world, {"README.md": b"more words\n"})
    accuracies[still] = 80.5
    await night(world)
    ((_, is_open, body),) = _issues(world)
    assert is_open
    assert "It is one of these 2 commits" in body
    assert f"Last measured: `{still}`" in body
    assert "accuracy 80.5" in body
    assert len(await _alarms(world)) == 1


@told
async def test_one_bad_machine_raises_no_alarm(world: World) -> None:
    """What one machine shows is repeated on another one first."""
    await _good_nights(world)

    def script(commit: str, seed: int) -> Training:
        accuracy = 80.0 if seed <= 2 else 90.0
        return Training(values={"validation/accuracy": accuracy, "train/seconds_per_step": 0.1})

    world.script = script
    await night(world)
    assert _issues(world) == []
    assert await _alarms(world) == []


@told
async def test_a_pull_request_that_is_worse_is_no_alarm(world: World) -> None:
    """That is what it was asked about."""
    await _good_nights(world)
    _accuracy_is(world, {world.pull.head_sha: 80.0})
    await world.says("maya", "/benchmark resnet50 vs=base")
    assert "1 regression" in world.read()[0]
    assert _issues(world) == []


@told
async def test_runs_that_fail_at_night(world: World) -> None:
    """One issue with the reason; it is closed when they run again."""
    await schedule(world)
    world.script = lambda commit, seed: Training(reason="user_error", exit=1, sentence="status 1")
    await night(world)
    await night(world)
    ((title, is_open, body),) = _issues(world)
    assert title.startswith("resnet50: fails since ")
    assert is_open
    assert "The training command ended with an error" in body or "status 1" in body
    _accuracy_is(world, {})
    await night(world)
    ((_, is_open, _),) = _issues(world)
    assert not is_open


@told
async def test_what_a_person_has_closed_is_not_opened_again(world: World) -> None:
    accuracies: dict[str, float] = {}
    _accuracy_is(world, accuracies)
    await _good_nights(world)
    bad = await merges(world, {CODE: b"print('worse')\n"})
    accuracies[bad] = 80.0
    await night(world)
    (issue,) = world.repository.issues.values()
    maya = Actor(account=world.sandbox.add_account("maya"))
    await world.sandbox.acts.update(world.repository, issue.number, maya, Wanted(state="closed"))
    await world.settle()
    later = await merges(world, {"README.md": b"words\n"})
    accuracies[later] = 80.0
    await night(world)
    assert [is_open for _, is_open, _ in _issues(world)] == [False]


@told
async def test_a_subject_that_means_mischief_is_only_text(world: World) -> None:
    """W-rows: mentions, references and markup in what people wrote."""
    accuracies: dict[str, float] = {}
    _accuracy_is(world, accuracies)
    await _good_nights(world)
    bad = await merges(world, {"@everyone <img src=x>.py": b"\n", CODE: b"print('worse')\n"})
    accuracies[bad] = 80.0
    await night(world)
    ((_, _, body),) = _issues(world)
    assert "@everyone" not in body
    assert "<img" not in body
