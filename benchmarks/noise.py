"""How measurements of trainings scatter: the generators behind the figures of the verdict, and of the test that guards
them.

Accuracy: each benchmark has a standard deviation over seeds of its own, 0.1 to 0.6 points, and one seed in a hundred
goes wrong. Time of a step: machines of one type differ by 1 to 5 %, runs on one machine by 0.2 to 1 %; three benchmarks
in ten have two modes 3 to 6 % apart, one for each machine, and on one machine in twenty a neighbour moves in at some
time and slows down what runs from then on, by 15 % on average.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bot.measure.comparison import Evidence
from bot.measure.metrics import Metric, Sample, complete

ACCURACY: Metric = complete("accuracy", {"tag": "accuracy", "kind": "accuracy", "better": "higher", "gate": True})
STEP_TIME: Metric = complete(
    "step_time", {"tag": "step_time", "kind": "time", "unit": "s", "better": "lower", "gate": True}
)
_LEVEL_PP, _LEVEL_S = 76.0, 0.25
_BAD_SEEDS, _BAD_SEED_PP = 0.01, 2.0
_NOISY_MACHINES, _NOISY_BY = 0.05, 0.15


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One benchmark's accuracy in points."""

    random: np.random.Generator
    sd_pp: float

    @classmethod
    def draw(cls, random: np.random.Generator) -> "Accuracy":
        return cls(random, _log_uniform(random, 0.1, 0.6))

    def values(self, count: int, worse_pp: float = 0.0) -> list[float]:
        """So many seeds, worse by so much."""
        good = self.random.normal(_LEVEL_PP - worse_pp, self.sd_pp, count)
        lost = (self.random.random(count) < _BAD_SEEDS) * self.random.exponential(_BAD_SEED_PP, count)
        return (good - lost).tolist()


@dataclass(frozen=True, slots=True)
class StepTime:
    """One benchmark's step time in seconds on machines of one type."""

    random: np.random.Generator
    machine_sd: float
    run_sd: float
    modes_apart: float
    fickle: bool = False  # neighbours come and go with every run

    @classmethod
    def draw(cls, random: np.random.Generator, *, fickle: bool = False) -> "StepTime":
        apart = random.uniform(0.03, 0.06) if random.random() < 0.3 else 0.0
        return cls(random, _log_uniform(random, 0.01, 0.05), _log_uniform(random, 0.002, 0.01), apart, fickle)

    @property
    def machines_sd(self) -> float:
        """How much one run differs from one machine to another, but for neighbours: a share."""
        return float(np.hypot(np.hypot(self.machine_sd, self.run_sd), self.modes_apart / 2))

    def machine(self, runs: int) -> list[float]:
        """How slow one more machine is for each of so many runs in turn: logarithms."""
        mode = self.modes_apart * self.random.integers(2)
        speed = np.full(runs, self.random.normal(0.0, self.machine_sd) + mode)
        if self.random.random() < _NOISY_MACHINES:
            if self.fickle:
                speed += self.random.exponential(_NOISY_BY, runs)
            else:
                speed[self.random.integers(runs) :] += self.random.exponential(_NOISY_BY)
        return (speed + self.random.normal(0.0, self.run_sd, runs)).tolist()

    @staticmethod
    def seconds(log: float, slower: float = 0.0) -> float:
        """A step's time from its logarithm, slower by such a share."""
        return float(_LEVEL_S * (1 + slower) * np.exp(log))


def seeds(metric: Metric, head: Sequence[float], base: Sequence[float]) -> Evidence:
    """Values of seeds, each from a machine of its own."""
    return Evidence(metric=metric, head=_samples(head, "head"), base=_samples(base, "base"), paired=False)


def timed(of: StepTime, head: int, base: int, slower: float = 0.0, *, alone: bool = False) -> Evidence:
    """Runs on machines of their own; those of the head `alone` on one."""
    logs = of.machine(head) if alone else [of.machine(1)[0] for _ in range(head)]
    runs = tuple(
        Sample(value=of.seconds(log, slower), seed=at, machine="head" if alone else f"head{at}", commit="head")
        for at, log in enumerate(logs)
    )
    others = [of.seconds(of.machine(1)[0]) for _ in range(base)]
    return Evidence(metric=STEP_TIME, head=runs, base=_samples(others, "base"), paired=False)


def interleaved(of: StepTime, pairs: int, slower: float = 0.0) -> Evidence:
    """Head and base in turn on one machine, H B B H ..."""
    logs = of.machine(2 * pairs)
    sides: dict[str, list[Sample]] = {"head": [], "base": []}
    for at, log in enumerate(logs):
        pair, second = divmod(at, 2)
        side = "head" if second == pair % 2 else "base"
        value = of.seconds(log, slower if side == "head" else 0.0)
        sides[side].append(Sample(value=value, seed=pair, machine="one", commit=side, pair=pair))
    return Evidence(metric=STEP_TIME, head=tuple(sides["head"]), base=tuple(sides["base"]), paired=True)


def _samples(values: Sequence[float], side: str) -> tuple[Sample, ...]:
    return tuple(Sample(value=value, seed=at, machine=f"{side}{at}", commit=side) for at, value in enumerate(values))


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))
