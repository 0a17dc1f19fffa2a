"""Metrics beyond the last value of a curve: at a step, until a value, a rate, a pattern, and what no script writes."""

import json

from bot.store.leases import of_request
from tests.harness.agent import Training
from tests.harness.story import story, told
from tests.harness.world import World

CONFIG = b"""\
version: 1
benchmarks:
  picks:
    run: python train.py --seed {seed}
    metrics:
      early: {tag: validation/accuracy, pick: at 200, unit: pp, tolerance: 2, noise: 0.2, gate: true}
      learns: {tag: validation/accuracy, pick: steps to 80, gate: true}
      images: {tag: train/loss, pick: rate, per_step: 32, tolerance: 10%, noise: 1%, gate: true}
      eval: {tag: eval/*/accuracy, unit: pp, tolerance: 2, noise: 0.2, gate: true}
      memory: {builtin: peak_device_memory, tolerance: 5%, gate: true}
      works: {builtin: passed, tolerance: 0}
"""


def _logs(step_s: float, late: int, sets: dict[str, float]) -> bytes:
    """Five values a curve: accuracy of 50, 60, 70 ... from step `late` on, one step of training each `step_s`."""
    rows = []
    for at in range(5):
        step = 100 * at
        values = {"validation/accuracy": 50.0 + (step - late) / 10, "train/loss": 1.0 / (1 + at)}
        values |= {f"eval/{name}/accuracy": value for name, value in sets.items()}
        rows.append(json.dumps({"step": step, "time": 1000.0 + step * step_s, **values}))
    return ("\n".join(rows) + "\n").encode()


def _trainings(world: World, *, step_s: float = 0.1, late: int = 0, sets: dict[str, float] | None = None) -> None:
    """What the head does otherwise; the base has two sets of evaluation."""
    base = {"cifar": 90.0, "voc": 70.0}

    def script(commit: str, seed: int) -> Training:
        head = commit == world.pull.head_sha
        logs = _logs(step_s, late, base if sets is None else sets) if head else _logs(0.1, 0, base)
        installed = ["same==1", "numpy==2.4.6" if head else "numpy==2.4.5"]
        told = {"peak_device_bytes": 2 * 10**9, "environment": {"packages": installed}}
        return Training(files={"logs/metrics.jsonl": logs}, told=told)

    world.script = script


async def _declares(world: World, config: bytes = CONFIG) -> None:
    await world.sandbox.push(world.repository, "maya", "main", {".github/benchmark.yml": config})


def _row(results: str, metric: str) -> list[str]:
    """The cells of a metric in the table of a comment, without marks."""
    (line,) = [line for line in results.splitlines() if f"`{metric}`" in line and line.startswith("|")][:1]
    return [cell.strip().strip("*") for cell in line.strip("|").split("|")]


@story
async def test_every_pick_in_one_table(world: World) -> None:
    """A pull request that trains twice as fast, and brings one more set of evaluation."""
    await _declares(world)
    _trainings(world, step_s=0.05, sets={"cifar": 90.0, "voc": 70.0, "coco": 40.0})
    await world.says("maya", "/benchmark picks vs=base")
    results, *_ = world.read()
    assert "70.0" in _row(results, "early")[1]
    assert "300" in _row(results, "learns")[1]
    # 32 images a step, ten and twenty steps a second
    assert "320" in _row(results, "images")[1]
    assert "640" in _row(results, "images")[2]
    assert "improvement" in _row(results, "images")[-1]
    assert [_row(results, f"eval[{name}]")[-1].split()[-1] for name in ("cifar", "voc")] == ["change", "change"]
    assert "new" in _row(results, "eval[coco]")[-1]
    assert "Base (-) and head (+) have other packages: `- numpy==2.4.5`, `+ numpy==2.4.6`." in results
    assert "2000 MB" in _row(results, "memory")[1]
    assert world.checks()["benchbot / picks"] == ("completed", "success")


@told
async def test_slower_learning_and_a_curve_that_is_gone(world: World) -> None:
    """Half as good at the same step; and what only the base has is missing, not green."""
    await _declares(world)
    _trainings(world, late=100, sets={"cifar": 90.0})
    await world.says("maya", "/benchmark picks vs=base")
    results, *_ = world.read()
    assert "regression" in _row(results, "early")[-1]
    assert "not measured" in _row(results, "eval[voc]")[-1]
    assert "no change" in _row(results, "eval[cifar]")[-1]
    assert world.checks()["benchbot / picks"] == ("completed", "failure")
    (request,) = await world.requests()
    page = f"{world.services.settings.base_url}/requests/{request.id}"
    async with world.session.get(page) as answer:
        assert "eval[voc]" in await answer.text()
    async with world.session.get(f"{page}/records.json") as answer:
        records = await answer.json()
    values = {one["side"]: {value["name"]: value["value"] for value in one["metrics"]} for one in records}
    assert list(values["head"]) == list(values["base"])
    assert (values["head"]["eval[voc]"], values["base"]["eval[voc]"]) == (None, 70.0)
    async with world.session.get(f"{page}/records.csv") as answer:
        assert "eval[cifar] (pp),eval[voc] (pp)" in (await answer.text()).splitlines()[0]
    async with world.services.database.read() as tx:
        lease = (await of_request(tx, request.id))[0]
    async with world.session.get(f"{page}/curves/{lease.id}.json") as answer:
        drawn = {one["name"]: [side["side"] for side in one["sides"]] for one in await answer.json()}
    assert (drawn["eval[cifar]"], drawn["eval[voc]"]) == (["head", "base"], ["base"])


@told
async def test_a_run_that_fails_has_a_value_where_that_is_the_question(world: World) -> None:
    """`passed` counts the runs that ended well; every other metric has lost them."""
    await _declares(world)
    _trainings(world)
    well = world.script

    def script(commit: str, seed: int) -> Training:
        fails = commit == world.pull.head_sha and seed == 2
        return Training(reason="user_error", sentence="Out of luck.", exit=3) if fails else well(commit, seed)

    world.script = script
    await world.says("maya", "/benchmark picks vs=base")
    results, *_ = world.read()
    assert _row(results, "works")[1:3] == ["1.00", "0.50"]
    assert "failed" in _row(results, "memory")[-1] or "regression" in _row(results, "memory")[-1]


@told
async def test_bad_metrics_are_told_with_their_lines(world: World) -> None:
    """Every fault at once, in the reply to a command and at its line in the pull request that makes it."""
    bad = CONFIG.replace(b"pick: at 200", b"pick: at").replace(b"peak_device_memory", b"peak_device_memry")
    bad = bad.replace(b"pick: rate, per_step", b"pick: last, per_step")
    await _declares(world, bad)
    said = await world.says("maya", "/benchmark picks vs=base")
    assert world.signs(said) == {"eyes", "confused"}
    (reply,) = world.read()
    assert ".github/benchmark.yml" in reply
    for line, words in ((6, "needs a number"), (8, "goes with pick: rate"), (10, "`peak_device_memory`")):
        assert any(str(line) in told and words in told for told in reply.splitlines()), (line, reply)
    assert await world.requests() == []
