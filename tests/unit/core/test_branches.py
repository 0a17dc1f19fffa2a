"""The first-parent history of a default branch, also when somebody pushes by force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.branches import Landed, Walker


def _commit(sha: str, parent: str, subject: str = "") -> Landed:
    return Landed(sha=sha, parent=parent, author="maya", subject=subject, committed_at=0.0)


CHAIN = [_commit(f"c{n}", f"c{n - 1}" if n else "") for n in range(6)]


@given(st.permutations(CHAIN))
def test_a_new_branch_is_numbered_from_its_first_commit(commits: list[Landed]) -> None:
    walker = Walker("c5", {})
    for commit in commits:
        walker.see(commit)
    assert walker.arrived
    assert walker.walk().positions == {f"c{n}": n + 1 for n in range(6)}
    assert walker.walk().kept_until is None


@given(st.permutations(CHAIN))
def test_what_came_since_goes_on_behind_what_is_known(commits: list[Landed]) -> None:
    walker = Walker("c5", {"c0": 1, "c1": 2, "c2": 3})
    for commit in commits:
        walker.see(commit)
    assert walker.walk().positions == {"c3": 4, "c4": 5, "c5": 6}
    assert walker.walk().kept_until is None


def test_commits_of_merged_branches_are_no_states_of_this_one() -> None:
    walker = Walker("merge", {"c0": 1})
    for commit in (_commit("merge", "c0"), _commit("side", "c0")):
        walker.see(commit)
    assert walker.walk().positions == {"merge": 2}


def test_a_forced_push_takes_away_what_came_after_the_parting() -> None:
    walker = Walker("other", {"c0": 1, "c1": 2, "c2": 3})
    walker.see(_commit("other", "c1"))
    assert walker.walk().positions == {"other": 3}
    assert walker.walk().kept_until == 2


def test_going_back_takes_away_and_adds_nothing() -> None:
    walker = Walker("c1", {"c0": 1, "c1": 2, "c2": 3})
    assert walker.arrived
    assert walker.walk().positions == {}
    assert walker.walk().kept_until == 2


def test_a_branch_with_another_beginning_has_nothing_in_common() -> None:
    walker = Walker("n1", {"c0": 1, "c1": 2})
    for commit in (_commit("n1", "n0"), _commit("n0", "")):
        walker.see(commit)
    assert walker.walk().positions == {"n0": 3, "n1": 4}
    assert walker.walk().kept_until == 0


def test_nothing_new() -> None:
    walker = Walker("c1", {"c0": 1, "c1": 2})
    assert walker.walk().positions == {}
    assert walker.walk().kept_until is None


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Merge pull request #17 from ada/faster", 17),
        ("Make it faster (#4)", 4),
        ("Revert “Make it faster (#4)” (#5)", 5),
        ("Speak of #4", None),
        ("", None),
        ("Merge pull request #99999999999 from a/b", None),
    ],
)
def test_the_pull_request_of_a_commit(subject: str, number: int | None) -> None:
    assert _commit("a", "", subject).number == number
