"""How often the rule is wrong, and what it sees: a few hundred cases of each situation, the same ones each time.

`make bench AREA=verdicts` measures the shares with thousands of new cases. Here a bar may be missed by three standard
errors of a share among so few cases, and no further.
"""

from math import sqrt

import numpy as np
import pytest

from benchmarks.verdicts import BAD, CELLS, Cell, reports, tally

CASES = 300
REPORTS = 10
# the situations with a lesson take longer to draw: one of each kind here
GUARDED = [
    cell
    for cell in CELLS
    if cell.bar is not None and (not cell.name.startswith("learned") or cell.name.endswith("_3_20"))
]


@pytest.mark.parametrize("cell", GUARDED, ids=lambda cell: cell.name)
def test_shares_of_verdicts(cell: Cell) -> None:
    share = tally(cell.make, CASES, np.random.default_rng(20261201), cell.counted)
    assert cell.bar is not None
    slack = 3 * sqrt(cell.bar * (1 - cell.bar) / CASES)
    assert share <= cell.bar + slack if cell.at_most else share >= cell.bar - slack


def test_two_hundred_gates_in_one_report() -> None:
    random = np.random.default_rng(7)
    false, _ = reports(REPORTS, 0, random)
    assert false <= 0.3 * REPORTS + 3 * sqrt(0.3 * REPORTS)
    false, caught = reports(REPORTS, BAD, random)
    assert caught >= 0.7 * BAD * REPORTS
    assert false <= 0.08 * (false + caught) + 3 * sqrt(0.08 * (false + caught))


def test_a_rule_that_believed_single_runs_would_be_found_out() -> None:
    """The bars tell good rules from bad ones: five runs of one machine taken for five machines are mostly wrong."""
    (cell,) = (cell for cell in CELLS if cell.name == "one_machine_worse")
    random = np.random.default_rng(3)
    wrong = 0
    for _ in range(CASES):
        evidence = cell.make(random)
        head, base = ([np.log(sample.value) for sample in side] for side in (evidence.head, evidence.base))
        error = sqrt(np.var(head, ddof=1) / len(head) + np.var(base, ddof=1) / len(base))
        wrong += (np.mean(head) - np.mean(base)) / error > 2.8
    assert cell.bar is not None
    assert wrong / CASES > 10 * cell.bar
