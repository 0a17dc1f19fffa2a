"""A base that was measured often enough need not be trained again: `seeds=` compares with the history of its branch."""

from tests.harness.agent import Training
from tests.harness.land import CONFIG
from tests.harness.nights import NIGHTLY, merges, night, samples, schedule
from tests.harness.story import told
from tests.harness.world import World


async def _remembered(world: World, nights: int = 3, config: bytes = CONFIG) -> None:
    """Two runs of the tip of main are known for each night; the head loses ten points against them."""

    def script(commit: str, seed: int) -> Training:
        lost = 10.0 if commit == world.pull.head_sha else 0.0
        return Training(values={"validation/accuracy": 90.0 - lost + seed / 100, "train/seconds_per_step": 0.1})

    world.script = script
    await schedule(world, config=config)
    for _ in range(nights):
        await night(world)
    assert len(await samples(world, "accuracy")) == 2 * nights


@told
async def test_only_the_head_is_trained(world: World) -> None:
    await _remembered(world)
    before = len(world.cloud.created)
    await world.says("tom", "/benchmark plan resnet50 seeds=2 vs=base")
    (plan,) = world.read()
    assert "H H (2 seeds, against 6 base runs of the history)" in plan
    await world.says("maya", "/benchmark resnet50 seeds=2 vs=base")
    results, *_ = world.read()
    assert "1 regression" in results
    assert "10 base runs" not in results
    assert "6 base runs" in results
    # the suspicion was repeated, and compared with the same history
    assert "4 of 4 seeds worse" in results
    assert len(world.cloud.created) == before + 2
    assert "Runs (4)" in results


@told
async def test_fresh_trains_the_base_too(world: World) -> None:
    """On the same machine; what was known before still counts."""
    await _remembered(world)
    await world.says("maya", "/benchmark resnet50 seeds=2 vs=base fresh")
    results, *_ = world.read()
    assert "Runs (8)" in results
    assert "10 base runs" in results


@told
async def test_pairs_bring_their_own_base(world: World) -> None:
    await _remembered(world)
    await world.says("maya", "/benchmark resnet50 vs=base")
    results, *_ = world.read()
    assert "Runs (8)" in results


@told
async def test_too_little_is_known(world: World) -> None:
    await _remembered(world, nights=2)
    await world.says("maya", "/benchmark resnet50 seeds=2 vs=base")
    results, *_ = world.read()
    assert "Runs (8)" in results


@told
async def test_what_was_measured_of_other_data_is_not_comparable(world: World) -> None:
    """A new command line is a new series, which starts empty."""
    await _remembered(world)
    changed = CONFIG.replace(b"train.py --model resnet50", b"train.py --model resnet50 --epochs 20")
    await merges(world, {".github/benchmark.yml": changed + NIGHTLY})
    await world.says("tom", "/benchmark plan resnet50 seeds=2 vs=base")
    (plan,) = world.read()
    assert "history" not in plan


@told
async def test_a_merge_base_before_the_first_night_has_no_history(world: World) -> None:
    """S08: what landed after the pull request left the branch says nothing about where it left."""
    await _remembered(world)
    await world.says("tom", "/benchmark plan resnet50 seeds=2")
    (plan,) = world.read()
    assert "history" not in plan


@told
async def test_a_night_is_compared_with_the_nights_before(world: World) -> None:
    await _remembered(world)
    bad = await merges(world, {"train.py": b"print('worse')\n"})
    world.script = lambda commit, seed: Training(
        values={
            "validation/accuracy": 90.0 + seed / 100 - (10.0 if commit == bad else 0.0),
            "train/seconds_per_step": 0.1,
        }
    )
    await night(world)
    *_, last = await world.requests()
    assert last.verdict == "regression"
    await night(world)
