"""Which offer to try next, and how long one that refused is left alone."""

from collections.abc import Mapping, Sequence

from runners.spec import Offer

_FIRST_S = 30.0
_LONGEST_S = 900.0


def scope_of(offer: Offer, named: str) -> str:
    """What a refusal is about: the scope that the backend named, else this one offer."""
    inner = named or "/".join((offer.zone, offer.machine_type, offer.provisioning))
    return f"{offer.backend}/{inner}"


def choose(offers: Sequence[Offer], cooling: Mapping[str, float], now: float) -> Offer | float:
    """The first offer that is not cooling, or the time when the first of them will not be any more.

    `cooling` maps scopes to the end of their cool-down. There is at least one offer.
    """
    earliest = []
    for offer in offers:
        mine = (scope_of(offer, name) for name in ("", *offer.scopes))
        free_at = max((cooling.get(scope, 0.0) for scope in mine), default=0.0)
        if free_at <= now:
            return offer
        earliest.append(free_at)
    return min(earliest)


def cool_s(times: int) -> float:
    """Seconds to leave a scope alone after so many refusals in a row: each time twice as long, at most 900."""
    return min(_LONGEST_S, _FIRST_S * 2.0 ** (min(times, 20) - 1))
