"""How far head lies from base, and how sure that is: a t-interval whose variance leans on a declared noise.

Everything here is in turned numbers: + is worse, logarithms where the metric's scale is log.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

PRIOR_WEIGHT = 4.0  # a declared noise counts as much as this many degrees of freedom
PAIR_NOISE = 1 / 3  # of the noise of one machine is left in the difference of two runs that it interleaved
MEDIAN_COST = 1.25  # standard error of a median against that of a mean
TRIM_FROM = 10  # base windows of this many units and more are trimmed by a tenth on each side
REUSED_BASE = 5  # a base of this many units is not run again with the head
MOST_RUNS = 50
_SURE = 0.995  # one side of the 99 % interval that a change needs
_LIKELY = 0.95  # one side of the 90 % interval that proves there is none
_ROUNDING = 1e-9

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """`harm` of the head with its standard error; `units` holds the harm of each head unit alone."""

    harm: float
    se: float
    dof: float
    variance: float
    units: Values
    base_units: int | None  # None: nothing was compared with but a number, or each unit is a pair with its own base

    def interval(self, level: int) -> tuple[float, float]:
        half = self.half(_SURE if level == 99 else _LIKELY)
        return self.harm - half, self.harm + half

    def half(self, quantile: float) -> float:
        return float(stdtrit(self.dof, quantile)) * self.se

    @property
    def p(self) -> float:
        """Probability of this much harm or more when nothing changed."""
        if self.se == 0:
            return 0.0 if self.harm > 0 else 1.0
        return float(stdtr(self.dof, -self.harm / self.se))

    def changed(self, tolerance: float, sign: int) -> bool:
        """Whether harm (sign 1) or gain (sign -1) reaches the tolerance and is surely not 0."""
        size = sign * self.harm
        return at_least(size, tolerance) and size - self.half(_SURE) > 0

    def within(self, tolerance: float) -> bool:
        """Whether harm and gain are surely smaller than the tolerance."""
        half = self.half(_LIKELY)
        return abs(self.harm) + half < tolerance or (self.harm == 0 and half == 0)

    def below(self, tolerance: float) -> bool:
        """Whether the harm is surely smaller than the tolerance."""
        return self.harm + self.half(_LIKELY) < tolerance

    def off(self, tolerance: float, sign: int) -> int:
        """How many head units are each off by the tolerance or more."""
        return sum(at_least(sign * float(unit), tolerance) for unit in self.units)

    def more_runs(self, tolerance: float) -> int | None:
        """How many more units are likely to decide, None if `MOST_RUNS` would not."""
        have, room = len(self.units), tolerance - abs(self.harm)
        for count in range(have + 1, MOST_RUNS + 1):
            se, dof = self._with(count)
            if room > 0 and float(stdtrit(dof, _LIKELY)) * se < room:
                return count - have
            if room <= 0 and count >= 2 and float(stdtrit(dof, _SURE)) * se < abs(self.harm):
                return count - have
        return None

    def _with(self, count: int) -> tuple[float, float]:
        added = count - len(self.units)
        if self.base_units is None:
            cost = MEDIAN_COST if count > 2 else 1.0
            return math.sqrt(self.variance / count) * cost, self.dof + added
        base = self.base_units if self.base_units >= REUSED_BASE else max(self.base_units, count)
        dof = self.dof + added + base - self.base_units
        return math.sqrt(self.variance * (1 / count + 1 / base)), dof


def at_least(size: float, tolerance: float) -> bool:
    """`size >= tolerance`, forgiving the last digits that a subtraction costs."""
    return size >= tolerance * (1 - _ROUNDING)


def of_pairs(differences: Sequence[float] | Values, noise: float | None) -> Estimate | None:
    """Head minus base of runs interleaved on one machine; `noise` is that of one machine. None: noise unknown."""
    units = np.asarray(differences, dtype=np.float64)
    variance, dof = _shrunk(None if noise is None else noise * PAIR_NOISE, squares(units), len(units) - 1)
    cost = MEDIAN_COST if len(units) > 2 else 1.0
    return _estimate(centre(units, robust=True), cost * math.sqrt(variance / len(units)), dof, variance, units, None)


def of_sides(
    head: Sequence[float] | Values,
    base: Sequence[float] | Values,
    noise: float | None,
    *,
    robust: bool,
    weight: float = PRIOR_WEIGHT,
) -> Estimate | None:
    """Independent units of both sides; `robust` takes the head's median (machines) instead of its mean (seeds).

    `weight` is the degrees of freedom that the noise counts as.
    """
    units, window = np.asarray(head, dtype=np.float64), np.asarray(base, dtype=np.float64)
    base_centre, base_squares, base_dof = _window(window)
    variance, dof = _shrunk(noise, squares(units) + base_squares, len(units) - 1 + base_dof, weight)
    cost = MEDIAN_COST if robust and len(units) > 2 else 1.0
    se = math.sqrt(variance * (cost**2 / len(units) + 1 / len(window)))
    harm = centre(units, robust=robust) - base_centre
    return _estimate(harm, se, dof, variance, units - base_centre, len(window))


def of_target(
    head: Sequence[float] | Values, target: float, noise: float | None, *, robust: bool, weight: float = PRIOR_WEIGHT
) -> Estimate | None:
    """Independent units of the head against a number that is known exactly."""
    units = np.asarray(head, dtype=np.float64)
    variance, dof = _shrunk(noise, squares(units), len(units) - 1, weight)
    cost = MEDIAN_COST if robust and len(units) > 2 else 1.0
    harm = centre(units, robust=robust) - target
    return _estimate(harm, cost * math.sqrt(variance / len(units)), dof, variance, units - target, None)


def centre(values: Sequence[float] | Values, *, robust: bool) -> float:
    """The mean; the median from three values on when `robust`."""
    array = np.asarray(values, dtype=np.float64)
    if _alike(array):
        return float(array[0])
    return float(np.median(array) if robust and len(array) > 2 else np.mean(array))


def base_centre(base: Sequence[float] | Values) -> float:
    """The centre of a base window, trimmed when it is long."""
    return _window(np.asarray(base, dtype=np.float64))[0]


def squares(values: Values) -> float:
    """Sum of squares around the mean; exactly 0 when all are alike but for rounding."""
    return 0.0 if _alike(values) else float(np.sum((values - np.mean(values)) ** 2))


def _alike(values: Values) -> bool:
    return bool(np.ptp(values) <= _ROUNDING * np.max(np.abs(values)))


def _window(values: Values) -> tuple[float, float, int]:
    """Centre, sum of squares and degrees of freedom; trimmed and winsorised as Yuen does when there are enough."""
    count = len(values)
    if count < TRIM_FROM or _alike(values):
        return centre(values, robust=False), squares(values), count - 1
    cut = count // 10
    kept = np.sort(values)[cut : count - cut]
    winsorised = np.clip(values, kept[0], kept[-1])
    left = len(kept)
    per_unit = float(np.var(winsorised, ddof=1)) * count * (count - 1) / (left * (left - 1))
    return float(np.mean(kept)), (left - 1) * per_unit, left - 1


def _shrunk(
    noise: float | None, sum_squares: float, dof: int, prior_weight: float = PRIOR_WEIGHT
) -> tuple[float, float]:
    """Variance of one unit and its degrees of freedom, (0, 0) when nothing is known of it.

    A declared noise of 0 says that the metric cannot vary; it is not believed when it does.
    """
    if noise is None and sum_squares == 0:
        return 0.0, 0.0
    weight = 0.0 if noise is None or (noise == 0 and sum_squares > 0) else prior_weight
    return (weight * (noise or 0.0) ** 2 + sum_squares) / (weight + dof), weight + dof


def _estimate(
    harm: float, se: float, dof: float, variance: float, units: Values, base_units: int | None
) -> Estimate | None:
    if dof == 0:
        return None
    return Estimate(harm=harm, se=se, dof=dof, variance=variance, units=units, base_units=base_units)
