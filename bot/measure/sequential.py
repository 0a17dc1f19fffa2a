"""When more seeds could change nothing: the end of a measurement that goes on until it is decided.

The levels are the same at each look. What that costs in wrong verdicts is simulated in `benchmarks/verdicts.py`.
"""

from collections.abc import Iterable

from bot.measure.comparison import Comparison, Why

__all__ = ["decided"]

# what further values of both sides may settle
_OPEN: frozenset[Why] = frozenset({"more_runs", "suspected"})


def decided(comparisons: Iterable[Comparison]) -> bool:
    """Whether none of these comparisons could come to another verdict with more seeds of both sides.

    A change and its absence are verdicts; runs that failed, and metrics without a direction or a tolerance, stay what
    they are. More seeds of one machine are no further measurement of how fast machines are.
    """
    return not any(
        one.verdict == "inconclusive" and one.reason in _OPEN and one.counted != "machine" for one in comparisons
    )
