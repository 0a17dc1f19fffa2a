"""The command line: help with examples, exit statuses, JSON, and what a wrong call says."""

import json
from pathlib import Path

import pytest

from bot.__main__ import main, subcommands
from tests.harness.cases import case_file
from tests.harness.land import CONFIG


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchmark.yml").write_bytes(CONFIG)


def _stops(words: list[str]) -> int:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0)


def test_every_subcommand_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {"demo", "serve", "work", "migrate", "setup", "replay", "run", "plan", "metrics"}
    assert wanted <= set(subcommands())
    for name in subcommands():
        assert _stops([name, "--help"]) == 0
        said = capsys.readouterr().out
        assert f"benchbot {name}" in said
        assert "examples:" in said


def test_a_wrong_call_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert _stops([]) == 2
    assert _stops(["dance"]) == 2
    assert "dance" in capsys.readouterr().err


def test_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    text = "Let us see.\n\n/benchmark @classification pairs=1\n/benchmark rsnet50\n> /benchmark all\n"
    assert main(["plan", text, "--config", "benchmark.yml", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (command,) = said["commands"]
    assert command == {"verb": "run", "targets": ["resnet50"], "options": {"pairs": "1"}, "line": 3}
    (refusal,) = said["refusals"]
    assert refusal["line"] == 4
    assert "resnet50" in refusal["hint"]
    (lease,) = said["leases"]
    assert lease["runs"] == [{"side": "head", "seed": 1}, {"side": "base", "seed": 1}]
    assert (lease["benchmark"], lease["scenario"], lease["init"], lease["hardware"]) == (
        "resnet50",
        "default",
        "default",
        "local",
    )
    assert said["estimate_usd"] == 0.0


def test_plan_of_words_about_commands_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "> /benchmark all", "--config", "benchmark.yml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"commands": [], "refusals": [], "leases": [], "estimate_usd": 0.0}


def test_plan_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "/benchmark resnet50 smoke", "--config", "benchmark.yml"]) == 0
    said = capsys.readouterr().out
    assert "H B B H" in said
    assert "higher is better" in said
    assert "exit status" in said


def test_plan_says_every_fault_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.yml").write_text("version: 3\nbenchmarks:\n  a: {rum: x}\n")
    assert main(["plan", "/benchmark all", "--config", "bad.yml"]) == 2
    said = capsys.readouterr().err
    assert "bad.yml:1:10" in said
    assert "Did you mean `run`?" in said
    assert main(["plan", "/benchmark all", "--config", "nothing.yml"]) == 2
    assert "--config" in capsys.readouterr().err


def test_metrics_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real = case_file("01-strict-run1.tfevents").read_bytes()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.out.tfevents.1").write_bytes(real)
    (tmp_path / "logs" / "more.jsonl").write_text('{"step": 1, "x": NaN}\n{"step": 2, "x": 1.5}\n')
    assert main(["metrics", "logs", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    foo = said["runs"]["."]["strict/foo"]
    assert (foo["points"], foo["first"]["step"], foo["last"]["step"]) == (100, 0, 495)
    assert said["runs"]["."]["x"]["first"] == {"step": 1, "value": "NaN"}
    assert said["runs"]["."]["x"]["non_finite"] == 1
    assert said["health"] == {"files": 2, "records": 103, "bad_records": 0, "tail_bytes": 0, "dropped_by_resume": 0}


def test_metrics_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_serve_without_an_app_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert _stops(["serve"]) == 2
    assert "benchbot setup" in capsys.readouterr().err


def test_work_with_a_bucket_whose_key_is_none(tmp_path: Path) -> None:
    """The worker ends with a sentence, not with a traceback."""
    (tmp_path / "key.json").write_text("{}")
    words = "[github]\napp_id = 1\nprivate_key = 'PRIVATE KEY'\nwebhook_secret = 's'\n"
    words += "[artifacts]\nbucket = 'gs://kept/here'\ncredentials_file = 'key.json'\n"
    (tmp_path / "benchbot.toml").write_text(words)
    with pytest.raises(SystemExit, match="The bucket's credentials do not work"):
        main(["work"])


def test_faulty_settings_are_all_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("benchbot.toml").write_text('port = "x"\ncolour = "red"\n')
    assert _stops(["migrate"]) == 2
    said = capsys.readouterr().err
    assert "port" in said
    assert "colour" in said


def test_migrate_makes_the_tables_and_may_be_repeated(tmp_path: Path) -> None:
    assert main(["migrate"]) == 0
    assert main(["migrate"]) == 0
    assert any(path.is_file() and path.stat().st_size > 10_000 for path in (tmp_path / ".benchbot").iterdir())


def test_run_outside_of_a_checkout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "resnet50"]) == 2
    assert "git" in capsys.readouterr().err


def test_the_demo_does_not_write_into_a_folder_that_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--folder", "."]) == 2
    assert "not empty" in capsys.readouterr().err
