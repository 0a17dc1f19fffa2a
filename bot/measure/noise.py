"""The noise of one measurement, learned from series of the same class where the repository has enough of them.

Each series says how much its own measurements scatter, with as many degrees of freedom as it has. Variances of a class
are taken to be draws from one scaled inverse chi-square; its scale and its weight follow from the mean and the variance
of their logarithms (the moment fit of Smyth 2004, "Linear models and empirical Bayes methods", section 6.2).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from scipy.special import digamma, polygamma

from bot.measure.estimate import Values
from bot.measure.metrics import Metric, Sample

LEAST_SERIES = 10
LEAST_DOF = 5
MOST_WEIGHT = 100.0
"""Where the series of a class differ no more than chance has them differ, the class counts as so many measurements."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What a class says of the noise of one measurement of a metric: its standard deviation in turned numbers (of
    logarithms on a log scale, else in the metric's unit), and as how many degrees of freedom that counts."""

    noise: float
    weight: float


@dataclass(frozen=True, slots=True)
class Spread:
    """How much one series scatters: a sum of squares in turned numbers, with its degrees of freedom."""

    squares: float
    dof: float


Classes = Mapping[tuple[str, ...], Mapping[str, Spread]]
"""The scatter of series by their class, then by the name of the series."""


def prior_of(metric: Metric, classes: Classes, own: str) -> Prior | None:
    """What the series of the metric's class say of it, but for its `own`, which speaks for itself."""
    return learn(spread for name, spread in classes.get(class_of(metric), {}).items() if name != own)


def class_of(metric: Metric) -> tuple[str, ...]:
    """What metrics have in common whose noise may be learned from one another."""
    return (metric.kind, metric.scale, metric.per, *([metric.unit] if metric.scale == "linear" else []))


def spread_of(metric: Metric, samples: Sequence[Sample]) -> Spread | None:
    """The scatter of a series, oldest sample first; None for one whose values have no logarithm where it needs one.

    Seeds are compared within a commit and its machine, so that a level that has moved is no noise. Machines are
    compared with the next one, since a commit is seldom measured on two.
    """
    values = [sample.value for sample in samples]
    if not values or not all(map(math.isfinite, values)) or (metric.scale == "log" and min(values) <= 0):
        return None
    turned = np.log(values) if metric.scale == "log" else np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = _scatter(metric, samples, turned)
    # values too large to be squared tell nothing
    return spread if spread and math.isfinite(spread.squares) else None


def _scatter(metric: Metric, samples: Sequence[Sample], turned: Values) -> Spread | None:
    named = list(zip(((one.commit, one.machine) for one in samples), turned.tolist(), strict=True))
    groups = [[value for _, value in group] for _, group in groupby(named, key=lambda pair: pair[0])]
    if metric.per == "machine":
        return _of_neighbours([float(np.median(group)) for group in groups])
    within = _within(groups)
    return within if within.dof >= LEAST_DOF else _of_neighbours([value for group in groups for value in group])


def learn(spreads: Iterable[Spread]) -> Prior | None:
    """What the series of a class say together; None when there are too few that say enough."""
    known = [spread for spread in spreads if spread.dof >= LEAST_DOF and spread.squares > 0]
    if len(known) < LEAST_SERIES:
        return None
    dof = np.array([spread.dof for spread in known])
    logs = np.log(np.array([spread.squares for spread in known]) / dof)
    centred = logs - digamma(dof / 2) + np.log(dof / 2)
    excess = float(np.var(centred, ddof=1) - np.mean(polygamma(1, dof / 2)))
    weight = MOST_WEIGHT if excess <= 0 else min(MOST_WEIGHT, 2 * _inverse_trigamma(excess))
    log_variance = float(np.mean(centred) + digamma(weight / 2) - math.log(weight / 2))
    return Prior(noise=math.exp(log_variance / 2), weight=weight)


def _within(groups: Sequence[Sequence[float]]) -> Spread:
    squares = sum(float(np.sum((np.asarray(group) - np.mean(group)) ** 2)) for group in groups)
    return Spread(squares, sum(len(group) - 1 for group in groups))


def _of_neighbours(values: Sequence[float]) -> Spread | None:
    """From the differences of neighbours, which know nothing of slow drift (von Neumann 1941); one step of a level
    spoils one difference, and the largest is left out for that."""
    squared = np.sort(np.diff(values) ** 2)[:-1]
    if not len(squared):
        return None
    # neighbours share a value, so that they say two thirds of what as many free differences would
    dof = 2 * len(squared) / 3
    return Spread(float(np.mean(squared)) / 2 * dof, dof)


def _inverse_trigamma(value: float) -> float:
    """The x > 0 whose trigamma is `value`, by Newton on its reciprocal, which is nearly a line."""
    x = 0.5 + 1 / value
    for _ in range(50):
        now = float(polygamma(1, x))
        step = now * (1 - now / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-10:
            break
    return x
