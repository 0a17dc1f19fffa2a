"""Thinning keeps what people look for: the ends, and every extreme. Several runs are one; a run got somewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.measure.curves import Spread, diverged_at, downsample, reached, spread, value_at
from bot.measure.reading import Curve

NAN = float("nan")


def _curve(values: list[float]) -> Curve:
    count = len(values)
    return Curve(
        run=".",
        tag="x",
        steps=np.arange(count, dtype=np.int64),
        wall_times=np.arange(count, dtype=np.float64),
        values=np.array(values, dtype=np.float64),
    )


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=300), st.integers(4, 60))
def test_ends_and_extremes_stay(values: list[float], points: int) -> None:
    whole = _curve(values)
    thin = downsample(whole, points)
    assert len(thin) <= max(points, 0) or len(thin) == len(whole) <= points
    assert set(thin.steps) <= set(whole.steps)
    assert list(thin.steps) == sorted(thin.steps)
    if values:
        assert (thin.steps[0], thin.steps[-1]) == (0, len(values) - 1)
        finite = whole.values[np.isfinite(whole.values)]
        if len(finite):
            shown = thin.values[np.isfinite(thin.values)]
            assert shown.min() == finite.min()
            assert shown.max() == finite.max()


def test_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="4 points"):
        downsample(_curve([1.0] * 9), 3)


# ---- several runs ---------------------------------------------------------------------------------------------------


def _spread(*runs: list[float], first: int = 0) -> Spread:
    traces = [(np.arange(len(run)) + first * at, np.array(run)) for at, run in enumerate(runs)]
    return spread(traces, 100)


def test_a_long_curve_keeps_its_mean_its_ends_and_its_extremes() -> None:
    values = np.random.default_rng(3).normal(size=(2, 5_000))
    drawn = spread([(np.arange(5_000) * 10, run) for run in values], 100)
    assert len(drawn.at) == 100
    assert (drawn.at[0], drawn.at[-1]) == (0.0, 49_990.0)
    assert (np.diff(drawn.at) > 0).all()
    assert (drawn.low.min(), drawn.high.max()) == (values.min(), values.max())
    assert drawn.centre.mean() == pytest.approx(values.mean())
    assert ((drawn.low <= drawn.centre) & (drawn.centre <= drawn.high)).all()


def test_runs_of_other_steps_are_brought_together() -> None:
    drawn = _spread([0.0, 2.0, 3.0], [5.0, NAN, 7.0], first=1)
    assert drawn.at.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert drawn.centre.tolist() == [0.0, 3.5, 4.5, 7.0]
    assert drawn.low.tolist() == [0.0, 2.0, 3.0, 7.0]
    assert drawn.high.tolist() == [0.0, 5.0, 6.0, 7.0]


def test_a_run_that_never_was_a_number_moves_nothing() -> None:
    together, alone = _spread([1.0, 2.0], [NAN] * 2), _spread([1.0, 2.0])
    assert together.centre.tolist() == alone.centre.tolist() == [1.0, 2.0]
    assert together.high.tolist() == alone.high.tolist()
    assert len(_spread([NAN] * 2).at) == len(_spread().at) == 0


# ---- where a run got to ---------------------------------------------------------------------------------------------


def test_the_value_at_a_step_is_the_last_one_up_to_there() -> None:
    curve = _curve([3.0, 2.0, NAN, 1.0])
    assert [value_at(curve, step) for step in (-1, 0, 1, 2, 3, 99)] == [None, 3.0, 2.0, None, 1.0, 1.0]


def test_the_first_step_that_is_as_good_as_a_level() -> None:
    """Also when the run is worse again later; nothing that is not a number is ever good."""
    curve = _curve([NAN, 3.0, 2.0, 5.0])
    assert reached(curve, 2.5, "lower") == (2, 2.0)
    assert reached(curve, 4.0, "higher") == (3, 3.0)
    assert reached(curve, 1.0, "lower") is None
    assert reached(_curve([float("-inf"), 1.0, 9.0]), 1.0, "lower") == (1, 1.0)
    timeless = Curve(run=".", tag="x", steps=curve.steps, wall_times=np.full(4, NAN), values=curve.values)
    assert reached(timeless, 2.5, "lower") == (2, None)


def test_a_run_diverges_where_its_last_number_is_behind_it() -> None:
    assert diverged_at(_curve([1.0, NAN, 2.0])) is None
    assert diverged_at(_curve([1.0, NAN, 2.0, float("inf"), NAN])) == 3
    assert diverged_at(_curve([NAN])) == 0
    assert diverged_at(_curve([])) is None
    assert diverged_at(_curve([1.0, NAN, NAN]), 3) is None
    assert diverged_at(_curve([1.0, NAN, NAN, NAN]), 3) == 1
