"""`benchbot plan`: a comment's commands as JSON and for people, on the operator's hardware."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.__main__ import main
from bot.commands.plan import plan_text
from bot.core.calls import plan_of
from bot.core.nouns import Plan
from tests.unit.core.making import BASE, CONFIG, HEAD, call, command, config

OPERATOR = """\
[hardware.a100x1]
backend = "gce"
price_usd_per_hour = 3.6
[hardware.v5e-4]
backend = "tpu"
price_usd_per_hour = 4.8
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the operator's file and the repository's, and no variable of the environment that counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCHBOT_CONFIG", raising=False)
    (tmp_path / "benchbot.toml").write_text(OPERATOR)
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "benchmark.yml").write_text(CONFIG)
    return tmp_path


def _json(capsys: pytest.CaptureFixture[str], text: str, *more: str) -> Any:
    assert main(["plan", text, "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_one_command_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert _json(capsys, "Please:\n\n/benchmark resnet50 pairs=1 set.batch=64") == {
        "commands": [{"verb": "run", "targets": ["resnet50"], "options": {"pairs": "1", "set.batch": "64"}, "line": 3}],
        "refusals": [],
        "leases": [
            {
                "benchmark": "resnet50",
                "scenario": "default",
                "init": "scratch",
                "hardware": "a100x1",
                "runs": [{"side": "head", "seed": 1}, {"side": "base", "seed": 1}],
            }
        ],
        "estimate_usd": 20.7,
    }


def test_targets_are_resolved_names(capsys: pytest.CaptureFixture[str]) -> None:
    said = _json(capsys, "/benchmark plan @classification -resnet50 vi*")
    assert said["commands"][0]["targets"] == ["resnet18", "vit"]
    assert [lease["benchmark"] for lease in said["leases"]] == ["resnet18", "vit"]


def test_a_line_stands_in_commands_or_in_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    # C05: nothing is silently ignored; C03: line ends of the web; C01, C04: prose and code are no commands
    lines = [
        "/benchmark resnet50",
        "/benchmark resnt50",
        "see `/benchmark vit`, or /benchmark vit was slow",
        "/benchmark resnet50 --seeds three",
        "/benchmark vit timeout=2d",
        "/benchmark help",
        "```",
        "/benchmark vit",
        "```",
    ]
    said = _json(capsys, "\r\n".join(lines))
    assert [(each["line"], each["verb"], each["targets"]) for each in said["commands"]] == [
        (1, "run", ["resnet50"]),
        (6, "help", []),
    ]
    assert [(each["line"], each["code"]) for each in said["refusals"]] == [
        (2, "unknown_target"),
        (4, "bad_value"),
        (5, "timeout_too_long"),
    ]
    assert "Did you mean `resnet50`" in said["refusals"][0]["hint"]
    assert len(said["leases"]) == 1


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("/benchmark resnet50 —pairs 3", {"pairs": "3"}),
        ("/benchmark\u00a0resnet50\u00a0pairs=3", {"pairs": "3"}),
        ("/benchmark resnet50 --scenario “tiling”", {"scenario": "tiling"}),
    ],
)
def test_characters_of_a_phone(typed: str, options: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    # C09
    said = _json(capsys, typed)
    assert said["refusals"] == []
    assert said["commands"][0]["options"] == options


def test_a_quote_that_stays_open_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = _json(capsys, '/benchmark resnet50 --scenario "open')
    assert [each["code"] for each in said["refusals"]] == ["unbalanced_quote"]
    assert said["commands"] == said["leases"] == []
    assert said["estimate_usd"] == 0


def test_estimates_of_all_commands_are_added(capsys: pytest.CaptureFixture[str]) -> None:
    said = _json(capsys, "/benchmark resnet50 on=all\n/benchmark vit")
    # 4 runs of 2 h and 1 h 45 min around them at 3.60 and at 4.80 USD; the second command is not billed
    assert said["estimate_usd"] == pytest.approx(9.75 * 3.6 + 9.75 * 4.8)
    assert [lease["hardware"] for lease in said["leases"]] == ["a100x1", "v5e-4", "local"]


def test_a_text_without_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "looks good to me"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "There is no command in this text" in said.err
    assert _json(capsys, "looks good") == {"commands": [], "refusals": [], "leases": [], "estimate_usd": 0.0}


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "/benchmark resnet50 scenario=tiling seeds=2\n/benchmark vit\n/benchmark bert"]) == 0
    assert capsys.readouterr().out == (
        "line 1: /benchmark resnet50 scenario=tiling seeds=2\n"
        "  resnet50 on a100x1, scenario tiling, init scratch: H B B H (2 seeds), at most 2h a run, 35.10 USD\n"
        "  Cost at most 35.10 USD in all.\n"
        "  resnet50 accuracy: last of validation/accuracy, accuracy, higher is better, tolerance 0.5 pp, gate\n"
        "  resnet50, not said and taken for granted: accuracy: read as accuracy, higher is better, tolerance 0.5 pp, "
        "noise 0.3 pp, pick last\n"
        "\n"
        "line 2: /benchmark vit\n"
        "  vit on local, scenario default, init default: H B B H, at most 1h a run\n"
        "  costs nothing\n"
        "  vit: judged by its exit status\n"
        "\n"
        "line 3: refused. There is no benchmark or group called `bert`. There are `resnet50`, `resnet18`, `vit`, "
        "`@classification` and `@nightly`.\n"
    )


def test_another_prefix_and_another_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCHBOT_PREFIX", "@bench")
    (folder / "other.yml").write_text("version: 1\nbenchmarks: {only: {run: x}}\n")
    said = _json(capsys, "/benchmark vit\n@bench all", "--config", str(folder / "other.yml"))
    assert [(each["line"], each["targets"]) for each in said["commands"]] == [(2, ["only"])]


def test_hardware_that_the_operator_does_not_have_is_a_fault_of_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "benchbot.toml").unlink()
    assert main(["plan", "/benchmark vit"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert ".github/benchmark.yml:5:16: The operator has defined no hardware `a100x1`. There is `local`." in said.err
    assert ".github/benchmark.yml:5:24: The operator has defined no hardware `v5e-4`." in said.err


def test_a_file_that_cannot_be_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "/benchmark vit", "--config", "nowhere.yml"]) == 2
    assert "nowhere.yml cannot be read" in capsys.readouterr().err
    (folder / "empty.yml").write_text("")
    assert main(["plan", "/benchmark vit", "--config", "empty.yml"]) == 2
    assert "empty.yml:1:1: The file is empty." in capsys.readouterr().err
    assert main(["plan", "/benchmark vit", "--config", str(folder)]) == 2
    (folder / "latin.yml").write_bytes(b"version: 1\nbenchmarks: {caf\xe9: {run: x}}\n")
    assert main(["plan", "/benchmark all", "--config", "latin.yml"]) == 2
    assert "latin.yml:2:" in capsys.readouterr().err


def test_the_answer_in_a_comment() -> None:
    given = call(command("plan", "all"), resolved=("resnet50", "vit"), head_only=("vit",))
    planned = plan_of(given)
    assert isinstance(planned, Plan)
    text = plan_text(planned, given)
    assert text.splitlines() == [
        "| benchmark | on | runs | at most | cost at most |",
        "|---|---|---|---|---|",
        "| `resnet50` (`scratch`) | `a100x1` | H B B H | 2h a run | 35.10 USD |",
        "| `vit` | `local` | H H (2 seeds) | 1h a run | nothing |",
        "",
        f"Head `{HEAD[:10]}`, base `{BASE[:10]}` (merge-base with main). Cost at most 35.10 USD in all.",
        "",
        "Only the head has `vit`: it is run alone.",
        "",
        "What is judged:",
        "",
        "- `resnet50` `accuracy`: last of `validation/accuracy`, accuracy, higher is better, tolerance 0.5 pp, gate",
        "- `resnet50`, not said and taken for granted: `accuracy`: read as accuracy, higher is better, "
        "tolerance 0.5 pp, noise 0.3 pp, pick last",
        "- `vit`: its exit status",
    ]


def test_a_metric_without_a_known_direction_is_told() -> None:
    # S02
    text = CONFIG.replace("accuracy: {tag: validation/accuracy, gate: true}", "score: {tag: score}")
    given = call(command("plan", "resnet50"), config=config(text), resolved=("resnet50",))
    planned = plan_of(given)
    assert isinstance(planned, Plan)
    assert "no direction is known, so it is shown without a verdict" in plan_text(planned, given)


def test_the_operator_s_budget_holds_for_plans_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "benchbot.toml").write_text(f"{OPERATOR}[limits]\nbudget_usd = 21\n")
    said = _json(capsys, "/benchmark resnet50\n/benchmark resnet50 pairs=1")
    assert [(each["line"], each["code"]) for each in said["refusals"]] == [(1, "budget")]
    assert [each["line"] for each in said["commands"]] == [2]
    assert said["estimate_usd"] == pytest.approx(20.7)
    assert "This would fit: `/benchmark resnet50 pairs=1`, up to 20.70 USD." in said["refusals"][0]["hint"]


def test_a_price_of_the_list_and_none_at_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = '[backends.gce]\nproject = "p"\n[hardware.a100x1]\nbackend = "gce"\ngpu = "a100"\n'
    (folder / "benchbot.toml").write_text(f'{known}zones = ["us-central1-a"]\n[hardware.v5e-4]\nbackend = "tpu"\n')
    said = _json(capsys, "/benchmark resnet50 pairs=1 on=a100x1")
    assert said["estimate_usd"] == pytest.approx(5.75 * 3.68)
    assert _json(capsys, "/benchmark resnet50 on=all")["estimate_usd"] is None
    assert main(["plan", "/benchmark resnet50 on=v5e-4"]) == 0
    assert "Price unknown: the operator sets price_usd_per_hour of v5e-4." in capsys.readouterr().out
    # hosts of one's own cost nothing, also while none of them is there
    own = '[hardware.a100x1]\nbackend = "pool"\nlabels = ["a100"]\n[hardware.v5e-4]\nbackend = "actions"\n'
    (folder / "benchbot.toml").write_text(own)
    assert _json(capsys, "/benchmark resnet50 on=all")["estimate_usd"] == 0
