"""What a benchmark and a request amount to, from how their runs ended."""

from dataclasses import replace

import pytest

from bot.core.conclusion import conclude, conclude_benchmark, join, suspected
from bot.core.nouns import BenchmarkReport, RunReport, Side
from bot.core.reasons import reason
from bot.measure.metrics import Sample
from tests.unit.report.situations import SAME_ACCURACY, WORSE_ACCURACY, benchmark, run


def _run(position: int, side: Side, why: str = "") -> RunReport:
    made = run(position, side, position)
    return replace(made, state="failed", reason=reason(why)) if why else made


def _benchmark(*runs: RunReport, **more: object) -> BenchmarkReport:
    return benchmark(runs=runs, **{"comparisons": (), "verdict": None, **more})


@pytest.mark.parametrize(
    ("head", "base", "verdict"),
    [
        (("", ""), ("", ""), "passed"),
        (("user_error", "user_error"), ("", ""), "regression"),
        (("user_error", ""), ("", ""), "regression"),
        (("user_error", "user_error"), ("user_error", ""), "failed"),
        (("user_error", "user_error"), ("user_error", "user_error"), "failed"),
        (("user_error", "user_error"), (), "failed"),
        (("agent_lost", "agent_lost"), ("", ""), "not measured"),
        (("", ""), ("user_error", "user_error"), "improvement"),
    ],
)
def test_judged_by_the_exit_status(head: tuple[str, ...], base: tuple[str, ...], verdict: str) -> None:
    runs = [_run(at, "head", why) for at, why in enumerate(head)]
    runs += [_run(at + 5, "base", why) for at, why in enumerate(base)]
    assert conclude_benchmark(_benchmark(*runs)).verdict == verdict


def test_one_passing_base_run_is_not_enough_to_blame_the_head() -> None:
    runs = (_run(0, "head", "user_error"), _run(1, "base"))
    assert conclude_benchmark(_benchmark(*runs)).verdict == "failed"


def test_infrastructure_is_nobodys_failure() -> None:
    found = conclude_benchmark(_benchmark(reason=reason("no_capacity")))
    assert found.verdict == "not measured"
    assert conclude_benchmark(_benchmark(reason=reason("setup_failed"))).verdict == "failed"


def test_gates_decide_and_without_gates_everything_does() -> None:
    advisory = replace(WORSE_ACCURACY, metric=replace(WORSE_ACCURACY.metric, gate=False))
    gate = replace(SAME_ACCURACY, metric=replace(SAME_ACCURACY.metric, gate=True))
    both = (_run(0, "head"), _run(1, "base"))
    assert conclude_benchmark(_benchmark(*both, comparisons=(gate, advisory))).verdict == "no change"
    assert conclude_benchmark(_benchmark(*both, comparisons=(advisory,))).verdict == "regression"


def test_a_metric_without_a_direction_decides_nothing_but_that_runs_failed() -> None:
    nameless = replace(
        SAME_ACCURACY,
        verdict="inconclusive",
        reason="no_direction",
        metric=replace(SAME_ACCURACY.metric, better=None, gate=False),
    )
    same = replace(SAME_ACCURACY, metric=replace(SAME_ACCURACY.metric, gate=False))
    both = (_run(0, "head"), _run(1, "base"))
    assert conclude_benchmark(_benchmark(*both, comparisons=(same, nameless))).verdict == "no change"
    assert conclude_benchmark(_benchmark(*both, comparisons=(nameless,))).verdict == "inconclusive"
    failed = replace(nameless, verdict="failed", reason="failed_runs")
    assert conclude_benchmark(_benchmark(*both, comparisons=(same, failed))).verdict == "failed"


def test_the_worst_benchmark_is_the_verdict_of_the_request() -> None:
    good = _benchmark(_run(0, "head"), _run(1, "base"))
    bad = _benchmark(_run(0, "head", "user_error"), _run(1, "head", "user_error"), _run(2, "base"), _run(3, "base"))
    verdict, benchmarks = conclude((good, bad))
    assert verdict == "regression"
    assert [each.verdict for each in benchmarks] == ["passed", "regression"]
    assert conclude(())[0] == "not measured"


# ---- what a second machine has to say first -------------------------------------------------------------------------


def _worse(**more: object) -> BenchmarkReport:
    return _benchmark(_run(0, "head"), _run(1, "base"), **{"comparisons": (WORSE_ACCURACY,), **more})


def test_a_regression_of_one_lease_is_a_suspicion() -> None:
    assert suspected((_worse(lease_id="first"),)) == ("first",)
    verdict, (told,) = conclude((_worse(),))
    assert (verdict, told.comparisons[0].reason) == ("inconclusive", "unrepeated")


def test_what_is_advisory_or_not_to_be_confirmed_is_not_repeated() -> None:
    advisory = replace(WORSE_ACCURACY, metric=replace(WORSE_ACCURACY.metric, gate=False))
    gate = replace(SAME_ACCURACY, metric=replace(SAME_ACCURACY.metric, gate=True))
    alone = replace(WORSE_ACCURACY, metric=replace(WORSE_ACCURACY.metric, confirm=False))
    assert suspected((_benchmark(comparisons=(gate, advisory)),)) == ()
    assert suspected((_benchmark(comparisons=(alone,)),)) == ()
    assert conclude((_benchmark(comparisons=(alone,)),))[0] == "regression"


def test_a_second_lease_is_judged_together_with_the_first() -> None:
    second = replace(WORSE_ACCURACY, head=_moved(WORSE_ACCURACY.head), base=_moved(WORSE_ACCURACY.base))
    together = join(
        _worse(lease_id="first", cost_usd=1.0), _worse(comparisons=(second,), repeats="first", cost_usd=2.0)
    )
    assert (together.repeated, together.cost_usd, len(together.runs)) == (True, 3.0, 4)
    assert len(together.comparisons[0].head) == 2 * len(WORSE_ACCURACY.head)
    assert suspected((together,)) == ()
    assert conclude((together,))[0] == "regression"


def test_a_second_lease_without_numbers_leaves_the_suspicion() -> None:
    together = join(_worse(), _benchmark(repeats="first", reason=reason("no_capacity")))
    assert not together.repeated
    assert "could not be repeated on another machine. No machine could be had in time." in together.notes[-1]
    assert conclude((together,))[0] == "inconclusive"


def test_a_curve_that_a_pattern_found_on_one_lease_only_is_not_confirmed() -> None:
    first, second = (
        tuple(
            replace(WORSE_ACCURACY, metric=replace(WORSE_ACCURACY.metric, name=f"accuracy[{part}]")) for part in parts
        )
        for parts in ("ab", "bc")
    )
    moved = tuple(replace(one, head=_moved(one.head), base=_moved(one.base)) for one in second)
    together = join(_worse(comparisons=first), _worse(comparisons=moved))
    assert [(one.metric.name, one.verdict, one.reason) for one in together.comparisons] == [
        ("accuracy[a]", "inconclusive", "unrepeated"),
        ("accuracy[b]", "regression", ""),
        ("accuracy[c]", "inconclusive", "unrepeated"),
    ]


def _moved(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    return tuple(replace(sample, machine="another", seed=sample.seed + 10) for sample in samples)
