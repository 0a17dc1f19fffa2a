"""What things may cost: the most that a plan can take, the operator's limits, and what is told when one is in the way.

`spent` is what machines that are gone have cost; `reserved` is the most that what was let in and has not ended can
still take. Both and the plan's own estimate must stay under every limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from bot.core.markdown import PREFIX
from bot.core.money import Limits
from bot.core.nouns import Call, Plan
from bot.core.quantities import dollars, moment
from bot.core.wording import code, listed

# how long a machine may take for each part of its lease besides the runs
BOOT_S = 900.0
SETUP_S = 3600.0
COLLECT_S = 900.0
# the time after its deadline at which a cloud ends it by itself
DELETE_S = 900.0
CONFIRM_S = 24 * 3600.0

Period = Literal["", "day", "month"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """A limit that requests share: its name among `Limits`, whose it is in words, and the period that it is for."""

    name: str
    whose: str
    period: Period = ""


CAPS = (
    Cap(name="pull_usd", whose="this pull request"),
    Cap(name="person_usd_per_day", whose="one person", period="day"),
    Cap(name="repository_usd_per_month", whose="this repository", period="month"),
    Cap(name="month_usd", whose="this bot", period="month"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """How a cap stands now, in US dollars; `spent_usd` since the beginning of its period."""

    cap: Cap
    limit_usd: float
    spent_usd: float = 0.0
    reserved_usd: float = 0.0

    @property
    def room_usd(self) -> float:
        """What may still be asked for."""
        return max(0.0, self.limit_usd - self.spent_usd - self.reserved_usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Why a plan cannot be paid for. `room_usd` is what could be, None where no smaller command would help."""

    code: str = "budget"
    sentence: str
    hint: str = ""
    room_usd: float | None = None


def machine_limit_s(work_s: float) -> float:
    """The longest time from the order of a machine to its deadline, when its runs take at most `work_s`."""
    return BOOT_S + SETUP_S + work_s + COLLECT_S


def most_usd(price_usd_per_hour: float | None, work_s: float, hosts: int = 1) -> float | None:
    """The most that the machines of a lease can cost: their price until the cloud ends them by itself.

    None: the price is unknown.
    """
    if price_usd_per_hour is None:
        return None
    return round(price_usd_per_hour * hosts * (machine_limit_s(work_s) + DELETE_S) / 3600, 4)


def usd(amount: float | None) -> str:
    """`12.40 USD`, `nothing`, `price unknown`."""
    if amount is None:
        return "price unknown"
    return f"{amount:.2f} USD" if amount else "nothing"


def request_limit_usd(call: Call) -> float | None:
    """What this one request may cost: the operator's limit, or a smaller one that was typed."""
    typed = call.command.options.get("budget")
    limits = (call.limits.budget_usd, None if typed is None else dollars(str(typed)))
    return min((limit for limit in limits if limit is not None), default=None)


def over_budget(plan: Plan, call: Call) -> Excess | None:
    """Why one request may not cost as much as the plan, None when it may. A command may only lower the limit."""
    typed, most, limit = call.command.options.get("budget"), call.limits.budget_usd, request_limit_usd(call)
    if typed is not None and most is not None and (dollars(str(typed)) or 0) > most:
        return Excess(
            sentence=f"{code(f'budget={typed}')} is more than the {most:.2f} USD that one request may cost here.",
            hint="A command may only lower it.",
        )
    if limit is None:
        return None
    estimate = plan.estimate_usd
    if estimate is None:
        return _unpriced(plan, "limits.budget_usd" if typed is None else f"budget={typed}")
    if estimate <= limit:
        return None
    return Excess(
        sentence=f"This may cost up to {estimate:.2f} USD; one request may cost {limit:.2f} USD.",
        hint="Name fewer benchmarks, fewer `pairs=` or a shorter `timeout=`, or ask the operator for a larger budget.",
        room_usd=limit,
    )


def over_caps(plan: Plan, accounts: Iterable[Account], now: float) -> Excess | None:
    """Why the plan does not fit under the limits that requests share, told of the one with the least room."""
    full = min(accounts, key=lambda account: account.room_usd, default=None)
    if full is None:
        return None
    estimate, name = plan.estimate_usd, f"limits.{full.cap.name}"
    if estimate is None:
        return _unpriced(plan, name)
    # what costs nothing is free also where more was spent than there should be
    if not estimate or estimate <= full.room_usd:
        return None
    per = f" a {full.cap.period}" if full.cap.period else ""
    return Excess(
        sentence=f"This may cost up to {estimate:.2f} USD, and {full.room_usd:.2f} USD are left of the "
        f"{full.limit_usd:.2f} USD that {full.cap.whose} may cost{per} ({code(name)}): {full.spent_usd:.2f} USD are "
        f"spent, {full.reserved_usd:.2f} USD are reserved for what has not ended.",
        hint=_frees(full, now),
        room_usd=full.room_usd,
    )


def must_confirm(plan: Plan, limits: Limits) -> bool:
    """Whether a person has to say that it may cost as much."""
    estimate, limit = plan.estimate_usd, limits.confirm_usd
    return limit is not None and (estimate is None or estimate > limit)


def waiting_sentence(estimate_usd: float | None, call: Call, lapses_at: float) -> str:
    """What a request waits for whose cost has to be confirmed."""
    return (
        f"{_needs_word(estimate_usd, call.limits)} It starts when {code(call.sender.login)} or somebody with write "
        f"right types `{PREFIX} confirm`, and lapses at {moment(lapses_at)}."
    )


def unattended(plan: Plan, limits: Limits) -> Excess | None:
    """Why something that nobody typed is not started where a person would be asked; None where nobody would."""
    if not must_confirm(plan, limits):
        return None
    return Excess(
        sentence=f"{_needs_word(plan.estimate_usd, limits)} What runs by itself has nobody to ask.",
        room_usd=limits.confirm_usd,
    )


def since(period: Period, now: float) -> float:
    """When the period of a cap has begun, in seconds since the epoch."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return {"": 0.0, "day": today.timestamp(), "month": today.replace(day=1).timestamp()}[period]


def until(period: Period, now: float) -> float:
    """When the next period of a cap begins."""
    begun = datetime.fromtimestamp(since(period, now), UTC)
    if period == "month":
        return (begun + timedelta(days=32)).replace(day=1).timestamp()
    return (begun + timedelta(days=1)).timestamp()


def _frees(full: Account, now: float) -> str:
    said = []
    if full.reserved_usd:
        said.append("Of a reservation only what was really spent stays, as soon as its machines are gone.")
    if full.spent_usd and full.cap.period:
        said.append(f"What is spent counts until {moment(until(full.cap.period, now))}.")
    elif full.spent_usd:
        said.append("What is spent on a pull request stays spent.")
    return " ".join(said) or "Only the operator can raise the limit."


def _unpriced(plan: Plan, limit: str) -> Excess:
    names = plan.unpriced
    return Excess(
        code="price_unknown",
        sentence=f"Nobody knows what {listed(names)} cost{'s' if len(names) == 1 else ''}, and there is a limit "
        f"({code(limit)}), so it is not started.",
        hint=f"The operator sets {code('price_usd_per_hour')} in {listed(f'[hardware.{name}]' for name in names)}.",
    )


def _needs_word(estimate_usd: float | None, limits: Limits) -> str:
    costs = "Nobody knows what this costs" if estimate_usd is None else f"This may cost up to {estimate_usd:.2f} USD"
    return f"{costs}, and what may cost more than {usd(limits.confirm_usd)} needs a second word."
