"""When an alarm is opened, renewed and closed, and what its issue is called."""

import pytest

from bot.core.alarms import AlarmReport, Step, Suspect, step_of, suspects_between
from bot.measure.verdict import Verdict
from bot.report.issue import render_issue, title

OPEN = AlarmReport(
    id="a1",
    kind="failing",
    state="open",
    full_name="acme/vision",
    branch="main",
    name="resnet50",
    variant="",
    sentence="The training command ended with an error.",
    comparison=None,
    good_sha="a" * 40,
    bad_sha="b" * 40,
    last_sha="b" * 40,
    web_url="https://github.example/acme/vision",
)


@pytest.mark.parametrize(
    ("verdict", "is_open", "gate", "step"),
    [
        ("regression", False, True, "open"),
        ("regression", False, False, ""),
        ("regression", True, True, "renew"),
        ("inconclusive", True, True, "renew"),
        ("no change", True, True, "close"),
        ("improvement", True, True, "close"),
        # nothing was measured: the alarm is as it was
        ("failed", True, True, ""),
        ("not measured", True, True, ""),
        ("no change", False, True, ""),
        ("inconclusive", False, True, ""),
    ],
)
def test_what_a_verdict_means(verdict: Verdict, is_open: bool, gate: bool, step: Step) -> None:
    assert step_of(verdict, is_open=is_open, gate=gate) == step


def test_many_suspects_are_counted_and_not_linked() -> None:
    """A link would tell each of these pull requests that it is suspected."""
    path = [Suspect(sha=f"{n:040x}", number=n, author="ada", subject=f"Change {n}") for n in range(1, 61)]
    shown, more = suspects_between(path)
    assert (len(shown), more) == (50, 10)
    few = render_issue(_with(path[:2], 0), marker="")["body"]
    many = render_issue(_with(list(shown), more), marker="")["body"]
    assert "(https://github.example/acme/vision/pull/2)" in few
    assert "/pull/" not in many
    assert "… and 10 more commits" in many


def test_an_ended_alarm_says_why() -> None:
    closed = render_issue(_with([], 0, state="closed"), marker="<!-- m -->")
    assert closed["state"] == "closed"
    assert "as good as it was" in closed["body"]
    accepted = render_issue(_with([], 0, state="accepted", accepted_by="maya", why="new @init"), marker="")
    assert accepted["state_reason"] == "not_planned"
    assert "new @init" not in accepted["body"]
    assert "new @\u200binit" in accepted["body"]


def test_a_title_is_one_line_of_bounded_length() -> None:
    long = title(_with([], 0, name="resnet\n50 @ada " + "x" * 500))
    assert "\n" not in long
    assert len(long) < 256
    assert "@ada" not in long


def _with(suspects: list[Suspect], more: int, **changes: object) -> AlarmReport:
    values = {field: getattr(OPEN, field) for field in OPEN.__dataclass_fields__}
    return AlarmReport(**{**values, "suspects": tuple(suspects), "more_suspects": more, **changes})
