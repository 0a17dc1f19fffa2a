"""Money: the most that a plan can cost, the limits, what is told when one is in the way, and what would fit."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.core.budget import (
    CAPS,
    Account,
    most_usd,
    must_confirm,
    since,
    unattended,
    until,
    waiting_sentence,
)
from bot.core.calls import plan_of, unasked, within_caps
from bot.core.money import Limits
from bot.core.nouns import Call, Hardware, Plan, Refusal
from tests.unit.core.making import HARDWARE, call, command

NOON = datetime(2026, 12, 31, 12, tzinfo=UTC).timestamp()
CAP = {cap.name: cap for cap in CAPS}


def _call(*targets: str, limits: Limits | None = None, resolved: tuple[str, ...] = (), **options: str) -> Call:
    given = command("run", *targets, **options)
    return call(given, resolved=resolved or targets, limits=limits or Limits())


def _plan(given: Call) -> Plan:
    planned = plan_of(given)
    assert isinstance(planned, Plan), planned
    return planned


def _account(name: str, limit: float, spent: float = 0.0, reserved: float = 0.0) -> Account:
    return Account(cap=CAP[name], limit_usd=limit, spent_usd=spent, reserved_usd=reserved)


def test_the_most_is_the_price_until_the_cloud_ends_it_by_itself() -> None:
    # 15 min of boot, an hour of setup, the runs, 15 min to collect, 15 min until the cloud's own limit
    assert most_usd(4.0, 3600) == 4.0 * 2.75
    assert most_usd(4.0, 3600, hosts=3) == 3 * 4.0 * 2.75
    assert most_usd(0.0, 3600) == 0.0
    assert most_usd(None, 3600) is None


def test_the_operators_word_wins_over_the_list() -> None:
    assert Hardware(name="a", price_usd_per_hour=1.0, listed_usd_per_hour=9.0).most_usd_per_hour == 1.0
    assert Hardware(name="a", price_usd_per_hour=0.0, listed_usd_per_hour=None).most_usd_per_hour == 0.0
    assert Hardware(name="a", listed_usd_per_hour=9.0).most_usd_per_hour == 9.0
    assert Hardware(name="a", listed_usd_per_hour=None).most_usd_per_hour is None


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (34.0, "This would fit: `/benchmark resnet50 pairs=1`, up to 20.70 USD."),
        (20.0, "Even `/benchmark resnet50 pairs=1` may cost up to 20.70 USD."),
    ],
)
def test_a_budget_names_the_command_that_fits(room: float, told: str) -> None:
    refusal = plan_of(_call("resnet50", limits=Limits(budget_usd=room)))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "budget"
    assert refusal.sentence == f"This may cost up to 35.10 USD; one request may cost {room:.2f} USD."
    assert refusal.hint.endswith(told)


def test_first_fewer_runs_then_one_machine_alone_the_cheapest_first() -> None:
    given = _call("resnet50", "vit", on="all", scenario="all", pairs="3", limits=Limits(budget_usd=25))
    given = replace(given, resolved=("resnet50",))
    refusal = plan_of(given)
    assert isinstance(refusal, Refusal)
    typed = "`/benchmark resnet50 on=a100x1 scenario=tiling pairs=1`, up to 20.70 USD"
    assert f"This would fit: {typed}." in refusal.hint
    alone = plan_of(_call("resnet50", pairs="1", limits=Limits(budget_usd=1)))
    assert isinstance(alone, Refusal)
    assert "There is no smaller command." in alone.hint


def test_a_smaller_budget_that_was_typed_holds_for_what_is_suggested() -> None:
    refusal = plan_of(_call("resnet50", seeds="3", budget="21usd", limits=Limits(budget_usd=1000)))
    assert isinstance(refusal, Refusal)
    assert "`/benchmark resnet50 seeds=1 budget=21usd`" in refusal.hint
    given = _call("resnet50", budget="30usd")
    shared = within_caps(replace(given, command=command("run", "resnet50")), _plan(_call("resnet50")), (), NOON)
    assert shared is None


def test_a_command_may_only_lower_the_budget() -> None:
    refusal = plan_of(_call("vit", budget="50usd", limits=Limits(budget_usd=20)))
    assert isinstance(refusal, Refusal)
    assert "more than the 20.00 USD that one request may cost here" in refusal.sentence
    assert refusal.hint == "A command may only lower it."


def test_a_cap_says_what_is_spent_reserved_left_and_when_it_frees() -> None:
    given = _call("resnet50")
    day = _account("person_usd_per_day", 60, spent=10, reserved=20)
    month = _account("month_usd", 1000, spent=10, reserved=20)
    refusal = within_caps(given, _plan(given), (month, day), NOON)
    assert refusal is not None
    assert refusal.sentence == (
        "This may cost up to 35.10 USD, and 30.00 USD are left of the 60.00 USD that one person may cost a day "
        "(`limits.person_usd_per_day`): 10.00 USD are spent, 20.00 USD are reserved for what has not ended."
    )
    assert refusal.hint == (
        "Of a reservation only what was really spent stays, as soon as its machines are gone. "
        "What is spent counts until 2027-01-01 00:00 UTC. "
        "This would fit: `/benchmark resnet50 pairs=1`, up to 20.70 USD."
    )
    assert within_caps(given, _plan(given), (month,), NOON) is None


@pytest.mark.parametrize(
    ("account", "told"),
    [
        (_account("pull_usd", 40, spent=10), "What is spent on a pull request stays spent. This would fit"),
        (_account("pull_usd", 5), "Only the operator can raise the limit. Even "),
        (_account("pull_usd", 5, spent=50), "and 0.00 USD are left of the 5.00 USD that this pull request may cost ("),
        (_account("month_usd", 5, spent=1), "What is spent counts until 2027-01-01 00:00 UTC. Even "),
    ],
)
def test_what_stays_and_what_frees(account: Account, told: str) -> None:
    given = _call("resnet50")
    refusal = within_caps(given, _plan(given), (account,), NOON)
    assert refusal is not None
    assert told in f"{refusal.sentence} {refusal.hint}"


def test_what_costs_nothing_is_free_under_every_limit() -> None:
    given = _call("vit", limits=Limits(budget_usd=0))
    assert within_caps(given, _plan(given), (_account("month_usd", 5, spent=50),), NOON) is None
    assert not must_confirm(_plan(given), Limits(confirm_usd=0))


def test_a_price_that_nobody_knows_is_over_every_limit() -> None:
    unknown = {**HARDWARE, "a100x1": Hardware(name="a100x1", backend="gce", listed_usd_per_hour=None)}
    given = replace(_call("resnet50", "vit"), hardware=unknown)
    planned = _plan(given)
    assert planned.estimate_usd is None
    assert planned.unpriced == ("a100x1",)
    assert within_caps(given, planned, (), NOON) is None
    assert must_confirm(planned, Limits(confirm_usd=1000))
    assert not must_confirm(planned, Limits())
    shared = within_caps(given, planned, (_account("month_usd", 1000),), NOON)
    alone = plan_of(replace(given, limits=Limits(budget_usd=1000)))
    typed = plan_of(replace(given, command=command("run", "all", budget="5usd")))
    for refusal, limit in ((shared, "limits.month_usd"), (alone, "limits.budget_usd"), (typed, "budget=5usd")):
        assert isinstance(refusal, Refusal)
        assert refusal.code == "price_unknown"
        assert refusal.sentence == (
            f"Nobody knows what `a100x1` costs, and there is a limit (`{limit}`), so it is not started."
        )
        assert refusal.hint == "The operator sets `price_usd_per_hour` in `[hardware.a100x1]`."


def test_above_the_limit_a_person_is_asked_and_who_nobody_stands_behind_is_refused() -> None:
    given = _call("resnet50", limits=Limits(confirm_usd=30))
    planned = _plan(given)
    assert must_confirm(planned, given.limits)
    assert not must_confirm(planned, Limits(confirm_usd=35.1))
    sentence = waiting_sentence(planned.estimate_usd, given, NOON)
    assert sentence == (
        "This may cost up to 35.10 USD, and what may cost more than 30.00 USD needs a second word. It starts when "
        "`user1` or somebody with write right types `/benchmark confirm`, and lapses at 2026-12-31 12:00 UTC."
    )
    assert "Nobody knows what this costs, and" in waiting_sentence(None, given, NOON)
    refusal = unasked(given, planned)
    assert refusal is not None
    assert "What runs by itself has nobody to ask." in refusal.sentence
    assert "To be asked, type `/benchmark resnet50`." in refusal.hint
    assert "This would fit: `/benchmark resnet50 pairs=1`" in refusal.hint
    assert unattended(planned, Limits()) is None
    assert unasked(replace(given, limits=Limits()), planned) is None


def test_days_and_months_are_those_of_utc() -> None:
    def at(*date: int) -> float:
        return datetime(*date, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type] # three numbers

    assert (since("day", NOON), until("day", NOON)) == (at(2026, 12, 31), at(2027, 1, 1))
    assert (since("month", NOON), until("month", NOON)) == (at(2026, 12, 1), at(2027, 1, 1))
    assert until("month", at(2028, 2, 1)) == at(2028, 3, 1)
    assert since("", NOON) == 0.0
