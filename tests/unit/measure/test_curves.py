"""Thinning keeps what people look for: the ends, and every extreme."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.measure.curves import downsample
from bot.measure.reading import Curve


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
