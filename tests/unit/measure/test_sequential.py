"""When more seeds could change nothing."""

import pytest

from bot.measure.comparison import Comparison, Counted, Verdict, Why
from bot.measure.metrics import Metric
from bot.measure.sequential import decided


def _one(verdict: Verdict, reason: Why = "", counted: Counted = "seed") -> Comparison:
    return Comparison(metric=Metric(name="accuracy", tag="a"), verdict=verdict, reason=reason, counted=counted)


@pytest.mark.parametrize(
    ("comparison", "over"),
    [
        (_one("regression"), True),
        (_one("improvement"), True),
        (_one("no change"), True),
        (_one("failed", "failed_runs"), True),
        (_one("not measured", "missing_values"), True),
        (_one("inconclusive", "no_direction"), True),
        (_one("inconclusive", "no_tolerance"), True),
        (_one("inconclusive", "more_runs"), False),
        (_one("inconclusive", "suspected"), False),
        # two runs of one machine are one measurement of it, and so are ten
        (_one("inconclusive", "more_runs", "machine"), True),
        (_one("inconclusive", "one_machine", "machine"), True),
    ],
)
def test_only_what_more_seeds_could_settle_is_open(comparison: Comparison, over: bool) -> None:
    assert decided([comparison]) is over
    assert decided([comparison, _one("no change")]) is over


def test_nothing_at_all_is_decided() -> None:
    assert decided([])
