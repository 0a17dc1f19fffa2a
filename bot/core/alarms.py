"""Alarms: what the default branch has become worse at, since which commit, and who may have done it.

An alarm is opened by a regression that two machines have shown, or by runs that fail; it is closed when the branch is
as good as before, and accepted when somebody says that the new level is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.measure.verdict import Comparison, Verdict

AlarmKind = Literal["regression", "failing", "missed"]
AlarmState = Literal["open", "closed", "accepted"]

MOST_SUSPECTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A commit after the last good one up to the first bad one. `number` is the pull request that brought it, None for
    one that was pushed."""

    sha: str
    number: int | None
    author: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmReport:
    """Everything that an alarm has to say; its issue and its page are renderings of this value.

    `name` is `benchmark.metric`, or the benchmark or schedule itself where no metric is in question. `good_sha` is the
    last commit that was measured to be good, empty where none was; `suspects` are newest first, `more_suspects` counts
    those that are left out. `last_sha` is the newest commit that was measured. `page`, `results` and `web_url` are
    addresses of our pages and of the repository at GitHub. Times are seconds since the epoch.
    """

    id: str
    kind: AlarmKind
    state: AlarmState
    full_name: str
    branch: str
    name: str
    variant: str
    sentence: str
    comparison: Comparison | None
    good_sha: str
    bad_sha: str
    last_sha: str
    suspects: tuple[Suspect, ...] = ()
    more_suspects: int = 0
    opened_at: float = 0.0
    ended_at: float | None = None
    accepted_by: str = ""
    why: str = ""
    page: str = ""
    results: str = ""
    web_url: str = ""


Step = Literal["", "open", "renew", "close"]


def step_of(verdict: Verdict, *, is_open: bool, gate: bool) -> Step:
    """What a verdict on the default branch means for the alarm of its series.

    An open one is renewed by whatever is no proof that the old level is back; what was not measured says nothing.
    """
    if verdict == "regression":
        return "renew" if is_open else "open" if gate else ""
    if not is_open or verdict in ("not measured", "failed"):
        return ""
    return "close" if verdict in ("no change", "improvement", "passed") else "renew"


def suspects_between(path: Sequence[Suspect]) -> tuple[tuple[Suspect, ...], int]:
    """The suspects that are shown, newest first, and how many more there are."""
    return tuple(path[:MOST_SUSPECTS]), max(0, len(path) - MOST_SUSPECTS)
