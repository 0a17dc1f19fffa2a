"""What is compared, and what a comparison says: plain values that can be stored as they are."""

from dataclasses import dataclass
from typing import Literal

from bot.measure.metrics import Metric, Sample, Scale
from bot.measure.noise import Prior

Verdict = Literal[
    "failed",
    "not measured",
    "regression",
    "inconclusive",
    "improvement",
    "no change",
    "new",
    "passed",  # only of a benchmark that declares no metrics
]
Why = Literal[
    "",
    "suspected",  # it looks like a regression, but one run, a split vote or the number of gates speaks against it
    "unrepeated",  # a regression on one lease, and no second one could tell
    "unconfirmed",  # a regression on one lease that the second one does not show
    "more_runs",  # the interval is too wide
    "one_machine",  # a change of a time, and the base was measured on one machine only
    "no_base",  # the base runs gave no value
    "no_noise",  # neither declared nor to be learned from these runs
    "no_tolerance",
    "no_direction",
    "failed_runs",  # runs failed or diverged
    "missing_values",  # runs ended well, but did not write the metric
    "out_of_range",  # the numbers are too large to calculate with
]
Counted = Literal["seed", "machine", "pair"]
TargetState = Literal["", "holds", "missed", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The values of both sides for one metric, and the runs that gave none.

    `paired` tells that head and base were interleaved on the same machine and `Sample.pair` says which belong
    together; it counts only for a metric whose independent measurement is the machine. `failed_*` counts runs that
    failed or diverged, `missing_*` runs that ended well without writing the metric. A `prior` that was learned from
    other series stands in place of the metric's own noise; pairs have none.
    """

    metric: Metric
    head: tuple[Sample, ...]
    base: tuple[Sample, ...]
    paired: bool
    failed_head: int = 0
    failed_base: int = 0
    missing_head: int = 0
    missing_base: int = 0
    prior: Prior | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Head against base for one metric.

    `difference` and `interval` are head minus base in the metric's own direction: in its unit when `scale` is linear,
    as a fraction of the base when it is log. `scale` is the one used: a log metric with a value that is not above 0 is
    compared linearly. `level` is the interval's, 99 for a change and 90 otherwise. `p` is the chance of so much harm
    without a change. `units` and `base_units` count the independent measurements, which are `counted` in seeds,
    machines or pairs; `worse_runs` and `better_runs` those off by the tolerance or more. `more_runs` is how many more
    such measurements are likely to decide, None if that is not known. `repeated` is the difference that a second lease
    shows alone, None without one. `prior` is the learned noise that was used. All numbers are finite.
    """

    metric: Metric
    verdict: Verdict
    reason: Why = ""
    sentence: str = ""
    head: tuple[Sample, ...] = ()
    base: tuple[Sample, ...] = ()
    head_centre: float | None = None
    base_centre: float | None = None
    scale: Scale = "linear"
    difference: float | None = None
    interval: tuple[float, float] | None = None
    level: int = 90
    p: float | None = None
    counted: Counted = "seed"
    units: int = 0
    base_units: int = 0
    worse_runs: int = 0
    better_runs: int = 0
    more_runs: int | None = None
    repeated: float | None = None
    target: TargetState = ""
    failed_head: int = 0
    failed_base: int = 0
    missing_head: int = 0
    missing_base: int = 0
    prior: Prior | None = None
