"""Verdicts on trainings that are known to be alike or worse: how often the rule is wrong, and what it sees.

Every figure is a share of cases that are drawn anew each time; the seed is told, so that they can be had again:
 `BENCHBOT_SEED=... make bench AREA=verdicts`.
"""

import os
import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.figures import Figure
from benchmarks.noise import ACCURACY, STEP_TIME, Accuracy, StepTime, interleaved, seeds, timed
from bot.core.planning import FIRST_SEEDS
from bot.measure.comparison import Evidence
from bot.measure.noise import learn, spread_of
from bot.measure.sequential import decided
from bot.measure.verdict import Comparison, judge, judge_report

CASES = 2_000
REPORTS = 100
GATES, BAD = 200, 20

# a repository's other series of the same class, and the runs of head and base that their lesson is tried on
SERIES = 20
COUNTS = ((1, 1), (3, 3), (3, 5), (1, 20), (3, 20), (5, 50))

Make = Callable[[np.random.Generator], Evidence]


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured and what is true of it, the verdicts that are counted, and how often they may or must come."""

    name: str
    truth: str
    make: Make
    counted: tuple[str, ...]
    bar: float | None
    at_most: bool


def _accuracy(head: int, base: int, worse_pp: float = 0.0, *, declared: float | None = None) -> Make:
    """So many seeds; the noise is `declared` so many times as large as it is, or as it is by default."""

    def make(random: np.random.Generator) -> Evidence:
        of = Accuracy.draw(random)
        metric = ACCURACY if declared is None else replace(ACCURACY, noise=declared * of.sd_pp)
        return seeds(metric, of.values(head, worse_pp), of.values(base))

    return make


def _machines(head: int, base: int, slower: float = 0.0, *, alone: bool = False, declared: float | None = None) -> Make:
    """So many machines, or one `alone` for all runs of the head."""

    def make(random: np.random.Generator) -> Evidence:
        of = StepTime.draw(random)
        evidence = timed(of, head, base, slower, alone=alone)
        noise = STEP_TIME.noise if declared is None else declared * of.machines_sd
        return replace(evidence, metric=replace(STEP_TIME, noise=noise))

    return make


def _pairs(pairs: int, slower: float = 0.0, *, fickle: bool = False) -> Make:
    return lambda random: interleaved(StepTime.draw(random, fickle=fickle), pairs, slower)


def _learned(one: Make, other: Make) -> Make:
    """With the noise learned from the base of other series of the repository."""

    def make(random: np.random.Generator) -> Evidence:
        evidence = one(random)
        spreads = (spread_of(evidence.metric, other(random).base) for _ in range(SERIES))
        return replace(evidence, prior=learn(spread for spread in spreads if spread))

    return make


def _until_decided(most: Make, *, history: bool = False) -> Make:
    """Runs of both sides, with a history only of the head, are added until they decide."""

    def make(random: np.random.Generator) -> Evidence:
        whole = most(random)
        for runs in range(FIRST_SEEDS, len(whole.head) + 1):
            base = whole.base if history else whole.base[:runs]
            shown = replace(whole, head=whole.head[:runs], base=base)
            if decided([judge(shown)]):
                break
        return shown

    return make


_WORSE, _CLEARED = ("regression",), ("no change",)
_CHANGED = ("regression", "improvement")
CELLS = (
    Cell("accuracy_false", "alike", _accuracy(3, 20), _WORSE, 0.01, True),
    Cell("accuracy_caught", "1 point worse", _accuracy(3, 20, 1.0), _WORSE, 0.88, False),
    Cell("accuracy_cleared", "alike", _accuracy(3, 20), _CLEARED, 0.55, False),
    Cell("accuracy_at_tolerance", "worse by just the tolerance", _accuracy(3, 20, 0.5), _CLEARED, 0.06, True),
    Cell("one_against_one", "alike, no history", _accuracy(1, 1), ("inconclusive",), 0.98, False),
    Cell("time_false", "alike", _machines(3, 20), _WORSE, 0.015, True),
    Cell("time_caught_10", "10 % slower", _machines(3, 20, 0.10), _WORSE, 0.58, False),
    Cell("time_caught_20", "20 % slower", _machines(3, 20, 0.20), _WORSE, 0.94, False),
    Cell("one_machine_worse", "alike", _machines(5, 20, alone=True), _WORSE, 0.005, True),
    Cell("one_machine_better", "alike", _machines(5, 20, alone=True), ("improvement",), 0.005, True),
    Cell("pairs_false", "alike", _pairs(2), _CHANGED, 0.005, True),
    Cell(
        "pairs_false_fickle",
        "alike, neighbours come and go with every run",
        _pairs(2, fickle=True),
        _CHANGED,
        None,
        True,
    ),
    Cell("pairs_cleared", "alike", _pairs(2), _CLEARED, 0.90, False),
    Cell("pairs_caught_10", "10 % slower", _pairs(2, 0.10), _WORSE, 0.94, False),
    Cell("auto_none_false", "alike", _until_decided(_accuracy(5, 5)), _WORSE, 0.02, True),
    Cell("auto_none_cleared", "alike", _until_decided(_accuracy(5, 5)), _CLEARED, 0.55, False),
    Cell("auto_none_caught", "1 point worse", _until_decided(_accuracy(5, 5, 1.0)), _WORSE, 0.88, False),
    Cell("auto_20_false", "alike", _until_decided(_accuracy(5, 20), history=True), _WORSE, 0.02, True),
    Cell("auto_20_cleared", "alike", _until_decided(_accuracy(5, 20), history=True), _CLEARED, 0.75, False),
    Cell("auto_20_caught", "1 point worse", _until_decided(_accuracy(5, 20, 1.0), history=True), _WORSE, 0.94, False),
    Cell("understated_accuracy_2", "alike", _accuracy(2, 2, declared=0.5), _WORSE, 0.02, True),
    Cell("understated_accuracy_3", "alike", _accuracy(3, 3, declared=0.5), _WORSE, 0.01, True),
    Cell("understated_time_2", "alike", _machines(2, 2, declared=0.5), _WORSE, 0.03, True),
    Cell("understated_time_3", "alike", _machines(3, 3, declared=0.5), _WORSE, 0.01, True),
    Cell("overstated_accuracy_3", "alike", _accuracy(3, 3, declared=2.0), _WORSE, 0.005, True),
    Cell("overstated_time_3", "alike", _machines(3, 3, declared=2.0), _WORSE, 0.005, True),
    *(
        Cell(
            f"learned_accuracy_{head}_{base}",
            "alike",
            _learned(_accuracy(head, base), _accuracy(1, 20)),
            _WORSE,
            0.007,
            True,
        )
        for head, base in COUNTS
    ),
    *(
        Cell(
            f"learned_time_{head}_{base}",
            "alike",
            _learned(_machines(head, base), _machines(1, 20)),
            _WORSE,
            0.007,
            True,
        )
        for head, base in COUNTS
    ),
)
_SITUATIONS = {
    "accuracy": "accuracy of 3 seeds against 20",
    "one_against": "accuracy of 1 seed against 1",
    "time": "step time of 3 machines against 20",
    "one_machine": "step time of 5 runs on one machine against 20 machines",
    "auto_none": "accuracy of 2 to 5 seeds a side, until decided",
    "auto_20": "accuracy of 2 to 5 seeds against 20, until decided",
    "understated_accuracy": "accuracy of a few seeds a side, its noise declared half as large as it is",
    "understated_time": "step time of a few machines a side, its noise declared half as large as it is",
    "overstated_accuracy": "accuracy of a few seeds a side, its noise declared twice as large as it is",
    "overstated_time": "step time of a few machines a side, its noise declared twice as large as it is",
    "learned_accuracy": f"accuracy of so many seeds of head and base, noise learned from {SERIES} other series",
    "learned_time": f"step time of so many machines of head and base, noise learned from {SERIES} other series",
    "pairs": "step time of 2 interleaved pairs on one machine",
}


def measure() -> Iterator[Figure]:
    """All figures of the area."""
    seed = int(os.environ.get("BENCHBOT_SEED") or secrets.randbits(32))
    random = np.random.default_rng(seed)
    for cell in CELLS:
        share = tally(cell.make, CASES, random, cell.counted)
        where = next(text for name, text in _SITUATIONS.items() if cell.name.startswith(name))
        yield Figure(
            name=f"verdict.{cell.name}",
            value=100 * share,
            unit="%",
            bar=None if cell.bar is None else 100 * cell.bar,
            at_most=cell.at_most,
            how=f"{' or '.join(cell.counted)}, {where}, {cell.truth}; {CASES} cases, seed {seed}",
        )
    how = f"accuracy and step time, 3 against 20; {REPORTS} reports, seed {seed}"
    false, _ = reports(REPORTS, 0, random)
    told = f"false regressions in a report of {GATES} gates, nothing changed; {how}"
    yield Figure(name="verdict.report_false", value=false / REPORTS, unit="/report", bar=0.3, how=told)
    false, caught = reports(REPORTS, BAD, random)
    share, told = (
        100 * caught / (REPORTS * BAD),
        f"of {BAD} gates of {GATES} that are worse by twice the tolerance; {how}",
    )
    yield Figure(name="verdict.report_caught", value=share, unit="%", bar=70, at_most=False, how=told)
    share, told = 100 * false / max(1, false + caught), f"of the regressions that such reports show; {how}"
    yield Figure(name="verdict.report_false_share", value=share, unit="%", bar=8, how=told)


def tally(make: Make, cases: int, random: np.random.Generator, counted: Collection[str]) -> float:
    """The share of cases that get one of these verdicts."""
    return sum(judge(make(random)).verdict in counted for _ in range(cases)) / cases


def reports(count: int, bad: int, random: np.random.Generator) -> tuple[int, int]:
    """False and true regressions in reports, in each of which so many gates are worse by twice the tolerance."""
    false = caught = 0
    for _ in range(count):
        judged = judge_report(_gate(random, at, worse=at < bad) for at in range(GATES))
        found = [at for at, comparison in enumerate(judged) if comparison.verdict == "regression"]
        caught += sum(at < bad for at in found)
        false += sum(at >= bad for at in found)
    return false, caught


def _gate(random: np.random.Generator, at: int, *, worse: bool) -> Comparison:
    """Accuracy and step time in turn."""
    make = (_accuracy(3, 20, 1.0 if worse else 0.0), _machines(3, 20, 0.10 if worse else 0.0))[at % 2]
    return judge(make(random))
