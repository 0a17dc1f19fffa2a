"""The operator takes a repository's history out, and brings in what was measured before there was a bot."""

import asyncio
import io
import json
from pathlib import Path

import pytest

from bot.__main__ import main
from tests.harness.land import CONFIG
from tests.harness.nights import merges, night, samples, schedule
from tests.harness.story import told
from tests.harness.world import World


async def _benchbot(world: World, *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the command line on the bot's database."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOT_DATABASE_URL", world.services.settings.database_url)
        patch.setenv("BENCHBOT_DATA_FOLDER", str(world.services.settings.data_folder))
        patch.setattr("sys.stdout", out)
        patch.setattr("sys.stderr", err)
        status = await asyncio.to_thread(main, ["history", *words])
    return status, out.getvalue(), err.getvalue()


async def _file(world: World, *lines: dict[str, object]) -> str:
    path = world.folder / "numbers.jsonl"
    await asyncio.to_thread(path.write_text, "".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


@told
async def test_numbers_of_old_commits_join_the_series_that_the_nights_go_on_with(world: World) -> None:
    old = await schedule(world)
    new = await merges(world, {"train.py": b"print('better')\n"})
    await night(world)
    line = {"benchmark": "resnet50", "metric": "accuracy", "commit": old}
    file = await _file(world, *({**line, "value": 89.0 + seed, "seed": seed, "at": 1.7e9} for seed in (1, 2)))
    status, out, err = await _benchbot(world, "import", "acme/vision", file)
    assert (status, err) == (0, "")
    assert out == "2 samples brought in, 0 were there already.\n"
    assert [sha for _, sha, _ in await samples(world, "accuracy")] == [new, new, old, old]
    status, out, err = await _benchbot(world, "import", str(world.repository.id), file)
    assert out == "0 samples brought in, 2 were there already.\n"


@told
async def test_what_is_taken_out_can_be_brought_in_elsewhere(world: World) -> None:
    await schedule(world)
    await night(world)
    status, out, _ = await _benchbot(world, "export", "acme/vision")
    assert status == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["metric"], line["seed"], line["value"]) for line in lines] == [
        ("accuracy", 1, 90.01),
        ("accuracy", 2, 90.02),
        ("step_time", 1, pytest.approx(0.1001)),
        ("step_time", 2, pytest.approx(0.1002)),
    ]
    status, table, _ = await _benchbot(world, "export", "acme/vision", "--format", "csv")
    assert table.splitlines()[1].startswith("resnet50,default,default,local,accuracy,")
    path = world.folder / "numbers.csv"
    await asyncio.to_thread(path.write_text, table)
    status, out, _ = await _benchbot(world, "import", "acme/vision", str(path))
    assert (status, out) == (0, "0 samples brought in, 4 were there already.\n")


@told
async def test_noise_is_learned_from_the_series_of_other_metrics(world: World) -> None:
    names = [f"accuracy_{at}" for at in range(11)]
    metrics = b"".join(
        f"      {name}: {{tag: validation/{name}, better: higher, unit: pp, noise: 0.2, gate: false}}\n".encode()
        for name in names
    )
    head, first, rest = CONFIG.partition(b"      step_time:")
    tip = await schedule(world, config=head + metrics + first + rest)
    await night(world)
    lines = [
        {"benchmark": "resnet50", "metric": name, "commit": tip, "value": 80 + seed / 10, "seed": seed, "at": 1.7e9}
        for name in names
        for seed in range(1, 8)
    ]
    status, _, err = await _benchbot(world, "import", "acme/vision", await _file(world, *lines))
    assert (status, err) == (0, "")
    await world.says("maya", "/benchmark resnet50 vs=base")
    results, *_ = world.read()
    # seven seeds a tenth apart; the logarithm of a variance of so few is on average too low, which is allowed for
    (row,) = (line for line in results.splitlines() if line.startswith("| `resnet50` `accuracy`") and "seeds" in line)
    assert "0.23 pp (learned)" in row


@told
async def test_what_belongs_nowhere_is_told_and_the_rest_is_used(world: World) -> None:
    tip = await schedule(world)
    await night(world)
    good = {"benchmark": "resnet50", "metric": "accuracy", "commit": tip, "value": 91.0, "machine": "desk"}
    file = await _file(
        world,
        good,
        {**good, "benchmark": "resnet51"},
        {**good, "metric": "accuraccy"},
        {**good, "hardware": "a100x1"},
        {**good, "commit": "0" * 40},
        {"benchmark": "resnet50"},
    )
    status, out, err = await _benchbot(world, "import", "acme/vision", file)
    assert status == 1
    assert "2 samples brought in" in out
    assert "1 of them belong to commits that are not known to be on the default branch" in out
    assert "line 6: Object missing required field" in err
    assert "no benchmark resnet51" in err
    assert "no metric accuraccy" in err
    assert "a100x1" in err


@told
async def test_wrong_calls(world: World) -> None:
    status, _, err = await _benchbot(world, "export", "acme/visoin")
    assert (status, "there is no repository acme/visoin" in err) == (2, True)
    status, _, err = await _benchbot(world, "import", "acme/vision")
    assert (status, "import needs a file" in err) == (2, True)
    status, _, err = await _benchbot(world, "import", "acme/vision", str(Path(world.folder) / "nothing"))
    assert (status, "No such file" in err) == (2, True)
