"""The check run: green only when it is proven, within GitHub's limits whatever the report holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bot.core.nouns import ConfigFault
from bot.report.check import check_name, config_check, render_check
from tests.unit.report.situations import benchmark, report, situations
from tests.unit.report.test_text import HOSTILE

SITUATIONS = situations()
CONCLUSIONS = {
    "regression": "failure",
    "slower_step": "failure",
    "no_change": "success",
    "improvement": "success",
    "secrets": "failure",
    "not_measured": "neutral",
    "diverged": "failure",
    "head_fails": "failure",
    "three_benchmarks": "failure",
    "outdated": "success",
    "passed": "success",
    "new": "neutral",
    "inconclusive": "neutral",
    "suspected": "neutral",
    "cancelled": "cancelled",
    "over_budget": "action_required",
    "lapsed": "action_required",
    "waiting": None,
    "timeout": "timed_out",
    "user_error": "failure",
    "oom": "failure",
    "no_metrics": "failure",
    "queued": None,
    "running": None,
    "planning": None,
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_check(name: str, snapshot: SnapshotAssertion) -> None:
    check = render_check(SITUATIONS[name])
    buttons = " · ".join(f"[{action.label}] {action.description}" for action in check.actions)
    said = f"{check.name}: {check.status} {check.conclusion or ''}\n{buttons}\n\n# {check.title}\n\n"
    assert f"{said}{check.summary}\n\n---\n\n{check.text}\n" == snapshot(name=name)
    assert len(check.summary.encode()) <= 65_535
    assert len(check.text.encode()) <= 65_535
    assert (check.conclusion is None) == (check.status != "completed")
    for action in check.actions:
        assert len(action.label) <= 20
        assert len(action.description) <= 40
        assert len(action.identifier) <= 20


@pytest.mark.parametrize(("name", "conclusion"), CONCLUSIONS.items())
def test_conclusions(name: str, conclusion: str | None) -> None:
    assert render_check(SITUATIONS[name]).conclusion == conclusion


def test_nothing_but_proof_is_green() -> None:
    for name, said in SITUATIONS.items():
        if render_check(said).conclusion == "success":
            assert said.verdict in ("no change", "improvement", "passed"), name


def test_the_name_is_the_words_of_the_command() -> None:
    one = benchmark()
    assert check_name(report(one, kind="approval")) == "benchbot"
    assert check_name(report(one, targets=("@digits", "-vit"))) == "benchbot / @digits, -vit"
    long = check_name(report(one, targets=tuple(f"model-{at}" for at in range(100))))
    assert len(long) <= 200
    assert "more" in long


@given(HOSTILE, HOSTILE, st.integers(-3, 10_000))
def test_annotations_of_a_faulty_configuration(where: str, words: str, line: int) -> None:
    faults = tuple(ConfigFault(line=line, column=1, where=where, sentence=words, hint=words) for _ in range(120))
    check = config_check(faults, ".github/benchmark.yml")
    assert check.conclusion == "failure"
    assert len(check.summary.encode()) <= 65_535
    for annotation in check.annotations:
        assert annotation.start_line >= 1
        assert 0 < len(annotation.title) <= 255
        assert 0 < len(annotation.message.encode()) <= 65_536


def test_a_good_configuration_is_green() -> None:
    assert config_check((), ".github/benchmark.yml").conclusion == "success"
    assert config_check(None, ".github/benchmark.yml").annotations == ()


@given(HOSTILE, HOSTILE)
def test_hostile_names_stay_within_the_limits(name: str, words: str) -> None:
    said = report(benchmark(name, notes=(words,)), command=words, targets=(name, words), requester=words)
    check = render_check(replace(said, baseline=words))
    assert len(check.name) <= 255
    assert 0 < len(check.title) <= 255
    assert "\n" not in check.name + check.title
