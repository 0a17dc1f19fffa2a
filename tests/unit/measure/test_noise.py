"""Noise learned from other series: found again where it is known, and never from what says nothing of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.noise import ACCURACY, STEP_TIME, seeds
from bot.measure.metrics import Metric, Sample
from bot.measure.noise import LEAST_SERIES, MOST_WEIGHT, Prior, Spread, class_of, learn, prior_of, spread_of
from bot.measure.verdict import judge


def _series(values: list[list[float]], *, machine: str = "") -> list[Sample]:
    """The values of each commit's seeds, each commit on a machine of its own."""
    return [
        Sample(value=value, seed=seed, machine=machine or f"m{at}", commit=f"c{at}")
        for at, each in enumerate(values)
        for seed, value in enumerate(each)
    ]


def test_a_spread_is_found_again() -> None:
    random = np.random.default_rng(1)
    spreads = []
    for _ in range(400):
        # scaled inverse chi-square with 6 degrees of freedom around 0.3
        sd = 0.3 * math.sqrt(6 / random.chisquare(6))
        spreads.append(Spread(squares=sd**2 * float(random.chisquare(12)), dof=12))
    prior = learn(spreads)
    assert prior is not None
    assert prior.noise == pytest.approx(0.3, rel=0.1)
    assert prior.weight == pytest.approx(6, rel=0.4)


def test_series_that_are_alike_count_much_but_not_without_end() -> None:
    prior = learn([Spread(squares=4.0, dof=10)] * 30)
    # limited, so that the series itself can still speak
    assert prior is not None
    assert prior.weight == MOST_WEIGHT
    assert prior.noise == pytest.approx(math.sqrt(0.4), rel=0.1)


@pytest.mark.parametrize(
    "spreads",
    [
        [Spread(squares=1.0, dof=10)] * (LEAST_SERIES - 1),
        [Spread(squares=1.0, dof=4)] * 50,  # each says too little
        [Spread(squares=0.0, dof=10)] * 50,  # deterministic: their seeds are no measurements
        [],
    ],
)
def test_too_little_teaches_nothing(spreads: list[Spread]) -> None:
    assert learn(spreads) is None


def test_a_step_of_the_level_is_no_noise() -> None:
    random = np.random.default_rng(2)
    levels = [76.0] * 10 + [66.0] * 10
    by_seeds = spread_of(ACCURACY, _series([random.normal(level, 0.2, 2).tolist() for level in levels]))
    by_commits = spread_of(ACCURACY, _series([[random.normal(level, 0.2)] for level in levels]))
    for spread in (by_seeds, by_commits):
        assert spread is not None
        assert math.sqrt(spread.squares / spread.dof) == pytest.approx(0.2, rel=0.5)


def test_machines_are_compared_with_machines() -> None:
    """The runs of one machine agree with one another, which says nothing of the next machine."""
    random = np.random.default_rng(3)
    machines = [math.log(0.25) + random.normal(0, 0.04) for _ in range(40)]
    runs = [[math.exp(level + random.normal(0, 0.002)) for _ in range(4)] for level in machines]
    spread = spread_of(STEP_TIME, _series(runs))
    assert spread is not None
    assert math.sqrt(spread.squares / spread.dof) == pytest.approx(0.04, rel=0.5)


@pytest.mark.parametrize("values", [[], [[1.0]], [[1.0], [0.0], [1.0], [2.0]], [[1.0], [math.nan], [1.0]]])
def test_what_has_no_spread(values: list[list[float]]) -> None:
    assert spread_of(STEP_TIME, _series(values)) is None


@given(st.lists(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=3), max_size=20))
def test_any_series_has_a_finite_spread_or_none(values: list[list[float]]) -> None:
    for metric in (ACCURACY, STEP_TIME):
        spread = spread_of(metric, _series(values))
        assert spread is None or (math.isfinite(spread.squares) and spread.squares >= 0 and spread.dof >= 0)


@given(st.lists(st.tuples(st.floats(1e-300, 1e300), st.floats(5, 1e4)), min_size=LEAST_SERIES, max_size=40))
def test_any_class_teaches_something_usable(spreads: list[tuple[float, float]]) -> None:
    prior = learn(Spread(*each) for each in spreads)
    assert prior is not None
    assert 0 < prior.noise < math.inf
    assert 0 < prior.weight <= MOST_WEIGHT


def test_a_series_does_not_teach_itself() -> None:
    known = {f"s{at}": Spread(squares=1.0, dof=10) for at in range(LEAST_SERIES)}
    assert prior_of(ACCURACY, {class_of(ACCURACY): known}, "another") is not None
    assert prior_of(ACCURACY, {class_of(ACCURACY): known}, "s0") is None
    assert prior_of(STEP_TIME, {class_of(ACCURACY): known}, "another") is None


def test_units_keep_differences_apart_but_not_shares() -> None:
    assert class_of(ACCURACY) != class_of(replace(ACCURACY, unit=""))
    assert class_of(STEP_TIME) == class_of(replace(STEP_TIME, unit="ms"))


def test_a_learned_noise_decides_in_place_of_the_declared_one() -> None:
    evidence = seeds(ACCURACY, [75.2, 75.3], [76.0, 76.1])
    assert judge(evidence).verdict == "inconclusive"
    quiet = judge(replace(evidence, prior=Prior(noise=0.05, weight=20)))
    assert quiet.verdict == "regression"
    assert quiet.prior == Prior(noise=0.05, weight=20)
    loud = judge(replace(evidence, prior=Prior(noise=2.0, weight=20)))
    assert loud.verdict == "inconclusive"


def test_pairs_and_what_cannot_vary_learn_nothing() -> None:
    prior = Prior(noise=5.0, weight=20)
    exact: Metric = replace(ACCURACY, noise=0.0)
    assert judge(replace(seeds(exact, [76.0], [76.0]), prior=prior)).prior is None
    side = [Sample(value=0.25, seed=at, machine="m", commit="c", pair=at) for at in range(2)]
    paired = replace(seeds(STEP_TIME, [], []), head=tuple(side), base=tuple(side), paired=True, prior=prior)
    assert judge(paired).prior is None
