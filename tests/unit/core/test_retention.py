"""Which files have outlived their use."""

from hypothesis import given
from hypothesis import strategies as st

from bot.core.retention import GOOD, LOGS_TIMES, Ended, outlived

VERDICTS = st.sampled_from((*GOOD, "regression", "failed", "inconclusive", "not measured", None))
ended = st.lists(
    st.builds(
        Ended,
        request_id=st.uuids().map(str),
        benchmark=st.sampled_from(("resnet50", "bert")),
        finished_at=st.floats(0, 10),
        verdict=VERDICTS,
    ),
    max_size=60,
    unique_by=lambda one: one.request_id,
)
keep = st.integers(0, 4)


def _one(at: float, verdict: str = "no change", benchmark: str = "resnet50") -> Ended:
    return Ended(request_id=f"q{at}", benchmark=benchmark, finished_at=at, verdict=verdict)


def test_the_last_good_and_the_last_bad_of_each_benchmark_stay() -> None:
    some = [_one(1), _one(2), _one(3), _one(1.5, "regression"), _one(2.5, "failed"), _one(0, benchmark="bert")]
    assert [(one.request_id, one.logs_too) for one in outlived(some, 2, 1)] == [("q1.5", False), ("q1", False)]


def test_logs_stay_ten_times_as_long() -> None:
    gone = outlived([_one(at) for at in range(25)], 2, 0)
    assert [one.request_id for one in gone if one.logs_too] == ["q4", "q3", "q2", "q1", "q0"]
    assert len(gone) == 23


@given(ended, keep, keep)
def test_as_many_stay_as_were_asked_for_and_they_are_the_newest(some: list[Ended], good: int, bad: int) -> None:
    gone = {one.request_id for one in outlived(some, good, bad)}
    for benchmark in ("resnet50", "bert"):
        for kind, most in ((True, good), (False, bad)):
            mine = [one for one in some if one.benchmark == benchmark and one.good is kind]
            stay = [one for one in mine if one.request_id not in gone]
            assert len(stay) == min(most, len(mine))
            newest_gone = max((one.finished_at for one in mine if one.request_id in gone), default=-1.0)
            assert all(one.finished_at >= newest_gone for one in stay)


@given(ended, keep, keep)
def test_nothing_is_named_twice_and_order_does_not_matter(some: list[Ended], good: int, bad: int) -> None:
    gone = outlived(some, good, bad)
    assert len({one.request_id for one in gone}) == len(gone)
    assert sorted(map(repr, gone)) == sorted(map(repr, outlived(some[::-1], good, bad)))


@given(ended, keep, keep)
def test_what_has_gone_never_comes_back_when_more_results_come(some: list[Ended], good: int, bad: int) -> None:
    later = [*some, _one(11.0), _one(12.0, "failed")]
    before = {one.request_id: one.logs_too for one in outlived(some, good, bad)}
    after = {one.request_id: one.logs_too for one in outlived(later, good, bad)}
    assert all(name in after and after[name] >= logs_too for name, logs_too in before.items())


def test_a_whole_life_of_logs() -> None:
    assert LOGS_TIMES * 0 == 0, "who keeps nothing keeps no logs either"
    assert [one.logs_too for one in outlived([_one(1)], 0, 0)] == [True]
