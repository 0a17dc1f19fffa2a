"""`benchbot run` in a checkout: the same plan, agent, readers and verdict as on a pull request, without GitHub."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.__main__ import main
from runners.agent import trees
from runners.backends.local import place_of

CONFIG = """\
version: 1
benchmarks:
  model:
    run: python train.py {seed}
    timeout: 2m
    metrics:
      accuracy: {tag: accuracy, better: higher, unit: pp, tolerance: 2, noise: 0.2, gate: true}
  broken:
    run: python -c "raise SystemExit('no such file')"
"""
TRAIN = """\
import json, os, pathlib, sys
log = pathlib.Path(os.environ["BENCHBOT_LOGDIR"])
value = {value} + int(sys.argv[1]) / 100
log.joinpath("metrics.jsonl").write_text(json.dumps({{"step": 1, "accuracy": value}}) + "\\n")
print("trained")
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "project"
    (folder / ".github").mkdir(parents=True)
    (folder / ".github" / "benchmark.yml").write_text(CONFIG)
    (folder / "train.py").write_text(TRAIN.format(value=90))
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "Begin")
    _git(folder, "checkout", "-q", "-b", "change")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BENCHBOT_LOCAL_BASE_ENVIRONMENT", sys.prefix)
    yield folder
    place = place_of(folder / ".git" / "benchbot" / "machines" / "local", "main")
    if place.exists():
        trees.remove(place)


def _git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


async def _run(*words: str) -> int:
    return await asyncio.to_thread(main, ["run", *words])


async def test_worse_is_1_and_the_same_is_0(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "train.py").write_text(TRAIN.format(value=70))
    assert await _run("model") == 1
    said = capsys.readouterr()
    assert "1 regression" in said.out
    assert "70.0" in said.out
    assert "repeated on the same host" in said.out
    assert "uncommitted" in said.err
    _git(checkout, "commit", "-q", "-a", "-m", "Worse")
    assert await _run("model", "--vs", "self", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "no change"
    assert report["head_sha"] == report["base_sha"]
    (benchmark,) = report["benchmarks"]
    assert [run["side"] for run in benchmark["runs"]] == ["head", "base", "base", "head"]
    assert not list((checkout / ".git" / "benchbot" / "machines").glob("*/bb-*"))


async def test_a_failing_head_is_1(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await _run("broken", "pairs=1", "--vs", "main") == 1
    assert "no such file" in capsys.readouterr().out


async def test_wrong_calls_are_2(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await _run("modle", "--vs", "main") == 2
    assert "model" in capsys.readouterr().err
    assert await _run("model", "--vs", "nowhere") == 2
    assert "nowhere" in capsys.readouterr().err
    # nothing was changed here, so there is nothing to compare with the branch it left
    assert await _run("model") == 2
    assert "--vs" in capsys.readouterr().err
    (checkout / ".github" / "benchmark.yml").write_text("version: 1\n")
    assert await _run("model", "--vs", "main") == 2
    assert "benchmarks" in capsys.readouterr().err
