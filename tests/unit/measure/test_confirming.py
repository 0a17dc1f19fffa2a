"""One lease that is worse is a suspicion; a second one makes it a regression, or takes it back."""

from dataclasses import replace

import pytest

from bot.measure.comparison import Comparison, Evidence
from bot.measure.confirming import confirm, is_suspected, unconfirmed
from bot.measure.metrics import Metric, Sample
from bot.measure.verdict import judge

ACCURACY = Metric(name="accuracy", tag="a", better="higher", unit="pp", tolerance=0.5, noise=0.2, gate=True)
STEP_TIME = Metric(
    name="step_time", tag="t", better="lower", unit="s", scale="log", tolerance=0.05, noise=0.03, per="machine"
)


def _side(values: list[float], machine: str, seed: int) -> tuple[Sample, ...]:
    return tuple(
        Sample(value=value, seed=seed + at, machine=machine, commit="c" * 40, pair=seed + at)
        for at, value in enumerate(values)
    )


def _lease(metric: Metric, head: list[float], base: list[float], machine: str = "one", seed: int = 1) -> Comparison:
    sides = {"head": _side(head, machine, seed), "base": _side(base, machine, seed)}
    return judge(Evidence(metric=metric, paired=True, **sides))


def test_what_two_leases_show_is_a_regression() -> None:
    first = _lease(ACCURACY, [75.0, 75.1], [76.4, 76.5])
    second = _lease(ACCURACY, [75.1, 75.2], [76.3, 76.5], "two", 3)
    found = confirm(first, second)
    assert (found.verdict, found.reason) == ("regression", "")
    assert (found.units, found.worse_runs) == (4, 4)
    assert found.repeated == pytest.approx(-1.25)
    assert "4 of 4 seeds worse" in found.sentence


def test_a_slower_step_in_pairs_on_two_machines() -> None:
    first = _lease(STEP_TIME, [1.2, 1.21], [1.0, 1.0])
    found = confirm(first, _lease(STEP_TIME, [1.19, 1.2], [1.0, 1.01], "two", 3))
    assert (found.verdict, found.counted, found.units) == ("regression", "pair", 4)
    assert "in 2 leases" in found.sentence


def test_a_second_lease_that_shows_less_than_half_the_tolerance_takes_it_back() -> None:
    """All four together are still worse by the rule; the second machine alone is not."""
    first = _lease(ACCURACY, [73.0, 73.1, 73.0], [76.4, 76.5, 76.4])
    second = _lease(ACCURACY, [76.3], [76.4], "two", 4)
    together = confirm(first, second)
    assert (together.verdict, together.reason) == ("inconclusive", "unconfirmed")
    assert "not confirmed" in together.sentence
    assert "second lease alone shows -0.1 pp" in together.sentence
    enough = confirm(first, _lease(ACCURACY, [76.1], [76.4], "two", 4))
    assert enough.verdict == "regression"


def test_a_second_lease_that_is_as_good_leaves_no_regression() -> None:
    first = _lease(ACCURACY, [74.0], [76.4])
    assert first.reason == "suspected"
    second = _lease(ACCURACY, [76.5], [76.4], "two", 2)
    assert confirm(first, second).verdict != "regression"


def test_one_run_that_is_suspected_becomes_a_regression_with_its_second() -> None:
    first = _lease(ACCURACY, [74.0], [76.4])
    assert is_suspected(first)
    found = confirm(first, _lease(ACCURACY, [74.1], [76.4], "two", 2))
    assert (found.verdict, found.units) == ("regression", 2)


def test_runs_that_failed_on_the_second_machine_are_told() -> None:
    first = _lease(ACCURACY, [75.0, 75.1], [76.4, 76.5])
    second = replace(_lease(ACCURACY, [75.1], [76.3], "two", 3), failed_head=1)
    assert "1 of 4 head runs failed or diverged" in confirm(first, second).sentence


def test_what_has_to_be_repeated() -> None:
    worse = _lease(ACCURACY, [75.0, 75.1], [76.4, 76.5])
    assert is_suspected(worse)
    assert not is_suspected(_lease(ACCURACY, [76.4, 76.5], [75.0, 75.1]))
    assert not is_suspected(_lease(ACCURACY, [76.4, 76.5], [76.4, 76.5]))
    assert not is_suspected(replace(worse, reason="failed_runs"))


def test_what_cannot_vary_needs_no_second_machine() -> None:
    flops = Metric(name="flops", tag="f", better="lower", scale="log", tolerance=0.001, noise=0.0)
    found = _lease(flops, [2e9], [1e9])
    assert found.verdict == "regression"
    assert not is_suspected(found)


def test_a_time_that_one_machine_alone_shows_is_suspected_when_it_is_worse() -> None:
    def unpaired(head: list[float], base: list[float]) -> Comparison:
        sides = {"head": _side(head, "one", 1), "base": _side(base, "one", 1)}
        return judge(Evidence(metric=STEP_TIME, paired=False, **sides))

    slower, faster = unpaired([1.5, 1.5], [1.0, 1.0]), unpaired([1.0, 1.0], [1.5, 1.5])
    assert (slower.reason, faster.reason) == ("one_machine", "one_machine")
    assert (is_suspected(slower), is_suspected(faster)) == (True, False)


def test_without_a_second_lease_it_stays_a_suspicion() -> None:
    found = unconfirmed(_lease(ACCURACY, [75.0, 75.1], [76.4, 76.5]))
    assert (found.verdict, found.reason) == ("inconclusive", "unrepeated")
    assert "suspected regression" in found.sentence
    assert "on one machine only" in found.sentence
