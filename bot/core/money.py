"""Money as values: the operator's limits, sums that may be unknown, and what was spent. US dollars."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the operator lets things cost, in US dollars; None: no limit. Days and months are those of UTC.

    `budget_usd` is for one request. Above `confirm_usd` a person has to confirm before anything starts.
    """

    budget_usd: float | None = None
    pull_usd: float | None = None
    person_usd_per_day: float | None = None
    repository_usd_per_month: float | None = None
    month_usd: float | None = None
    confirm_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What some machines have cost together: `name` is what they have in common."""

    name: str
    usd: float
    seconds: float
    machines: int


def total_usd(amounts: Iterable[float | None]) -> float | None:
    """The sum; not known as soon as one of them is not."""
    known = tuple(amounts)
    return None if None in known else sum((amount for amount in known if amount is not None), 0.0)
