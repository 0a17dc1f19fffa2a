"""A regression that one lease shows is suspected until a second one, on another machine, shows it too."""

import math
from dataclasses import replace

from bot.measure.comparison import Comparison, Evidence, Why
from bot.measure.sentences import say
from bot.measure.verdict import judge

SHARE = 0.5
"""Of the tolerance: as much worse has the second lease to be on its own."""


def is_suspected(comparison: Comparison) -> bool:
    """Whether more machines have to tell: worse by the rule on one lease, or only its counts speak against that.

    A metric that cannot vary needs none, and neither do runs that failed.
    """
    if comparison.reason == "one_machine":
        return _harm(comparison) > 0
    if comparison.verdict != "regression":
        return comparison.reason == "suspected"
    return comparison.reason == "" and not _cannot_vary(comparison)


def unconfirmed(comparison: Comparison, reason: Why = "unrepeated") -> Comparison:
    """A regression that nothing confirms: inconclusive, and why."""
    doubtful = replace(comparison, verdict="inconclusive", reason=reason)
    return replace(doubtful, sentence=say(doubtful))


def confirm(first: Comparison, second: Comparison) -> Comparison:
    """Both leases together; a regression only if the second one alone points the same way.

    The units of both are pooled and judged by the rule. `repeated` is what the second lease says alone, in the numbers
    of `difference`.
    """
    together = judge(
        Evidence(
            metric=first.metric,
            head=first.head + second.head,
            # both were compared with the same history
            base=tuple(dict.fromkeys(first.base + second.base)),
            # samples without a pair are not taken for one
            paired=True,
            failed_head=first.failed_head + second.failed_head,
            failed_base=first.failed_base + second.failed_base,
            missing_head=first.missing_head + second.missing_head,
            missing_base=first.missing_base + second.missing_base,
            prior=first.prior,
        )
    )
    together = replace(together, repeated=second.difference)
    if together.verdict != "regression" or together.reason or _cannot_vary(together) or _points_there(second):
        return together
    return unconfirmed(together, "unconfirmed")


def _cannot_vary(comparison: Comparison) -> bool:
    low, high = comparison.interval or (0.0, 1.0)
    return comparison.metric.noise == 0 and low == high


def _points_there(comparison: Comparison) -> bool:
    metric, tolerance = comparison.metric, comparison.metric.tolerance or 0.0
    if comparison.difference is None:
        return False
    if comparison.scale == "log":
        return _harm(comparison) >= SHARE * math.log1p(tolerance)
    # a share of a base that has no logarithm
    unit = abs(comparison.base_centre or 0.0) if metric.scale == "log" else 1.0
    return _harm(comparison) >= SHARE * tolerance * unit


def _harm(comparison: Comparison) -> float:
    """The difference turned so that + is worse, in logarithms where the comparison is one of shares."""
    difference = comparison.difference or 0.0
    sign = -1.0 if comparison.metric.better == "higher" else 1.0
    return sign * (math.log1p(difference) if comparison.scale == "log" else difference)
