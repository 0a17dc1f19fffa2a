"""The rule: what is called a regression, what counts as proof that nothing changed, and what is never green."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.measure.comparison import Comparison, Evidence
from bot.measure.metrics import Amount, Metric, Sample, complete
from bot.measure.verdict import ORDER, judge, judge_report, overall


def _metric(name: str = "accuracy", **declared: object) -> Metric:
    values: dict[str, object] = {"tag": name, "better": "higher", "unit": "pp", **declared}
    return complete(name, values)


ACCURACY = _metric(tolerance=Amount(value=1.0), noise=Amount(value=0.2), gate=True)
TIME = _metric(
    "step_time", better="lower", unit="s", tolerance=Amount(value=5, percent=True), noise=Amount(value=1, percent=True),
    gate=True, per="machine",
)  # fmt: skip


def _samples(values: Sequence[float], machine: str = "m", *, pairs: bool = False) -> tuple[Sample, ...]:
    return tuple(
        Sample(value=value, seed=at + 1, machine=machine, commit="c", pair=at if pairs else None)
        for at, value in enumerate(values)
    )


def _judge(metric: Metric, head: Sequence[float], base: Sequence[float], **more: int) -> Comparison:
    paired = metric.per == "machine"
    return judge(
        Evidence(
            metric=metric,
            head=_samples(head, pairs=paired),
            base=_samples(base, pairs=paired),
            paired=paired,
            **more,
        )
    )


# ---- one metric -----------------------------------------------------------------------------------------------------


def test_a_clear_loss_is_a_regression() -> None:
    found = _judge(ACCURACY, [75.0, 75.2], [80.0, 80.2])
    assert found.verdict == "regression"
    assert found.difference == pytest.approx(-5.0)
    assert found.interval is not None
    assert found.interval[1] < 0
    assert found.level == 99
    assert "75.1" in found.sentence
    assert "80.1" in found.sentence


def test_a_clear_gain_is_an_improvement() -> None:
    assert _judge(ACCURACY, [85.0, 85.2], [80.0, 80.2]).verdict == "improvement"


def test_no_change_is_proven_by_its_interval() -> None:
    found = _judge(ACCURACY, [80.1, 80.0], [80.0, 80.1])
    assert found.verdict == "no change"
    assert found.interval is not None
    assert -1.0 < found.interval[0] <= found.interval[1] < 1.0


def test_noise_that_is_too_large_is_inconclusive_and_says_what_would_help() -> None:
    found = _judge(_metric(tolerance=Amount(value=0.5), noise=Amount(value=2.0)), [80.0, 82.0], [81.0, 79.5])
    assert (found.verdict, found.reason) == ("inconclusive", "more_runs")
    assert found.more_runs is None or found.more_runs >= 1


def test_one_run_never_accuses() -> None:
    found = _judge(ACCURACY, [60.0], [80.0])
    assert (found.verdict, found.reason) == ("inconclusive", "suspected")


def test_a_split_vote_is_only_suspected() -> None:
    found = _judge(_metric(tolerance=Amount(value=1.0), noise=Amount(value=0.05)), [79.5, 70.0], [80.0, 80.0])
    assert found.verdict == "inconclusive"


def test_slower_in_pairs_on_one_machine() -> None:
    found = _judge(TIME, [0.20, 0.22], [0.10, 0.11])
    assert found.verdict == "regression"
    assert found.counted == "pair"
    assert found.difference == pytest.approx(1.0)


def test_a_machine_that_slows_down_is_no_regression() -> None:
    # both sides take twice as long in the second pair; within each pair nothing changed
    assert _judge(TIME, [0.100, 0.200], [0.1001, 0.1999]).verdict == "no change"


def test_without_direction_there_is_no_verdict_but_a_hint() -> None:
    score = complete("score", {"tag": "score"})
    found = _judge(score, [4.0, 4.0], [5.0, 5.0])
    assert (found.verdict, found.reason) == ("inconclusive", "no_direction")
    assert "direction" in found.sentence


def test_rates_and_times_have_their_own_directions() -> None:
    rate = complete("images_per_sec", {"tag": "images_per_sec", "noise": Amount(value=1, percent=True)})
    step = complete("step_time_ms", {"tag": "step_time_ms", "noise": Amount(value=1, percent=True)})
    assert _judge(rate, [80.0, 80.5], [100.0, 100.5]).verdict == "regression"
    assert _judge(step, [12.0, 12.1], [10.0, 10.1]).verdict == "regression"
    assert _judge(rate, [120.0, 120.5], [100.0, 100.5]).verdict == "improvement"


# ---- zero, signs, and numbers that are none -------------------------------------------------------------------------


SKIPPED = complete("skipped", {"tag": "skipped", "better": "lower", "kind": "count", "tolerance": Amount(value=0.0)})


def test_a_base_of_zero_has_an_absolute_difference() -> None:
    found = _judge(SKIPPED, [3.0, 3.0], [0.0, 0.0])
    assert found.verdict == "regression"
    assert found.difference == 3.0
    assert math.isfinite(found.difference)


def test_zero_against_zero_is_unchanged() -> None:
    found = _judge(SKIPPED, [0.0, 0.0], [0.0, 0.0])
    assert found.verdict == "no change"
    assert found.difference == 0.0


def test_a_change_of_sign() -> None:
    reward = complete(
        "reward", {"tag": "reward", "better": "higher", "tolerance": Amount(value=0.1), "noise": Amount(value=0.01)}
    )
    found = _judge(reward, [0.5, 0.5], [-0.5, -0.5])
    assert found.verdict == "improvement"
    assert found.difference == pytest.approx(1.0)


def test_a_relative_metric_that_touches_zero_is_compared_as_it_is() -> None:
    loss = complete("loss", {"tag": "loss", "tolerance": Amount(value=5, percent=True)})
    assert loss.scale == "log"
    found = _judge(loss, [0.0, 0.0], [0.5, 0.5])
    assert found.scale == "linear"
    assert found.verdict in ("inconclusive", "improvement")


@given(
    st.lists(st.floats(allow_nan=False, width=64), min_size=1, max_size=5),
    st.lists(st.floats(allow_nan=False, width=64), min_size=0, max_size=5),
    st.sampled_from([ACCURACY, TIME, SKIPPED]),
)
@settings(deadline=None, max_examples=300)
def test_whatever_the_numbers_all_that_is_said_is_finite(head: list[float], base: list[float], metric: Metric) -> None:
    found = _judge(metric, head, base)
    assert found.verdict in ORDER
    numbers = [found.head_centre, found.base_centre, found.difference, found.p, *(found.interval or ())]
    assert all(number is None or math.isfinite(number) for number in numbers)
    assert "nan" not in found.sentence
    if not base:
        assert found.verdict not in ("regression", "improvement", "no change", "passed")


@given(st.lists(st.floats(50, 90), min_size=2, max_size=4), st.lists(st.floats(50, 90), min_size=2, max_size=4))
@settings(deadline=None)
def test_worse_one_way_is_better_the_other_way(head: list[float], base: list[float]) -> None:
    mirror = {"regression": "improvement", "improvement": "regression"}
    there, back = _judge(ACCURACY, head, base), _judge(ACCURACY, base, head)
    if len(head) == len(base):
        assert mirror.get(there.verdict, there.verdict) == back.verdict or "inconclusive" in (
            there.verdict,
            back.verdict,
        )
    assert (there.verdict == "regression") <= (back.verdict != "regression")


# ---- runs that gave nothing -----------------------------------------------------------------------------------------


def test_missing_values_are_not_measured() -> None:
    found = _judge(ACCURACY, [], [80.0, 80.0], missing_head=2)
    assert (found.verdict, found.reason) == ("not measured", "missing_values")


def test_failed_heads_are_not_good_news() -> None:
    assert _judge(ACCURACY, [80.0], [80.0, 80.0], failed_head=1).verdict not in ("no change", "improvement")
    assert _judge(ACCURACY, [], [80.0, 80.0], failed_head=2).verdict in ("failed", "regression")


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_nothing_that_failed_is_ever_green(failed: int, missing: int, failed_base: int, missing_base: int) -> None:
    more = {
        "failed_head": failed,
        "missing_head": missing,
        "failed_base": failed_base,
        "missing_base": missing_base,
    }
    found = _judge(ACCURACY, [80.0, 80.0], [80.0, 80.0], **more)
    if failed or missing:
        assert found.verdict not in ("no change", "improvement", "passed", "new")


def test_without_a_base_it_is_new() -> None:
    assert _judge(ACCURACY, [80.0, 80.1], []).verdict in ("new", "inconclusive")


# ---- a report -------------------------------------------------------------------------------------------------------


def test_many_gates_are_corrected_together() -> None:
    weak = _judge(_metric(tolerance=Amount(value=1.0), noise=Amount(value=0.55), gate=True), [78.3, 78.3], [80.0, 80.0])
    assert weak.verdict == "regression"
    assert weak.p is not None
    same = [_judge(ACCURACY, [80.0, 80.0], [80.0, 80.0]) for _ in range(40)]
    weak = replace(weak, p=0.004)
    first, *_ = judge_report([weak, *same])
    assert (first.verdict, first.reason) == ("inconclusive", "suspected")
    assert judge_report([weak])[0].verdict == "regression"


def test_advisory_metrics_are_not_corrected_and_do_not_count() -> None:
    advisory = replace(_judge(ACCURACY, [75.0, 75.0], [80.0, 80.0]), metric=replace(ACCURACY, gate=False), p=0.5)
    assert judge_report([advisory])[0].verdict == "regression"


def test_the_worst_verdict_stands_for_all() -> None:
    shuffled = list(ORDER)
    random.Random(1).shuffle(shuffled)
    assert overall(shuffled) == "failed"
    assert overall(["no change", "regression", "improvement"]) == "regression"
    assert overall(["no change", "inconclusive", "improvement"]) == "inconclusive"
    assert overall([]) == "not measured"
    assert ORDER.index("failed") < ORDER.index("not measured") < ORDER.index("regression") < ORDER.index("inconclusive")


def test_false_alarms_are_rare_and_real_losses_are_found() -> None:
    """A small simulation: no change is hardly ever accused, five tolerances are nearly always found."""
    chance = random.Random(7)
    metric = _metric(tolerance=Amount(value=1.0), noise=Amount(value=0.3), gate=True)

    def verdict(loss: float) -> str:
        head = [80 - loss + chance.gauss(0, 0.3) for _ in range(2)]
        return _judge(metric, head, [80 + chance.gauss(0, 0.3) for _ in range(2)]).verdict

    assert sum(verdict(0.0) == "regression" for _ in range(500)) <= 3
    assert sum(verdict(5.0) == "regression" for _ in range(200)) >= 190
    assert sum(verdict(5.0) in ("no change", "improvement") for _ in range(200)) == 0
