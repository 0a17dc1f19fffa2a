"""When schedules are due, above all when clocks are changed."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.timing import next_time, wrong_field


def _due(cron: str, timezone: str, after: str, count: int = 3) -> list[str]:
    zone, at = ZoneInfo(timezone), datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(timezone)).timestamp()
    found = []
    for _ in range(count):
        due = next_time(cron, timezone, at)
        assert due is not None
        at = due
        found.append(datetime.fromtimestamp(at, zone).isoformat(timespec="minutes"))
    return found


def test_every_night_at_the_wall_clock_of_its_zone() -> None:
    assert _due("30 2 * * *", "Asia/Tokyo", "2026-05-01T02:30") == [
        "2026-05-02T02:30+09:00",
        "2026-05-03T02:30+09:00",
        "2026-05-04T02:30+09:00",
    ]


def test_a_time_that_the_clock_skips_is_made_up_for_when_it_has_jumped() -> None:
    # clocks in Berlin go from 02:00 to 03:00 on 29 March 2026
    assert _due("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00") == [
        "2026-03-28T02:30+01:00",
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_a_time_that_comes_twice_counts_once() -> None:
    # and back from 03:00 to 02:00 on 25 October 2026
    assert _due("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 2) == [
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_what_runs_every_hour_follows_the_clock() -> None:
    assert _due("0 * * * *", "Europe/Berlin", "2026-10-25T01:30", 3) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T03:00+01:00",
    ]


def test_a_day_that_never_comes() -> None:
    assert wrong_field("0 0 31 2 *") == (2, "day of the month", "from 1 to 31")
    with pytest.raises(ValueError, match="fields"):
        wrong_field("0 0 1 1 * *")


@given(st.integers(0, 59), st.integers(0, 23), st.floats(1.6e9, 2.2e9))
def test_the_next_time_is_later_and_at_most_a_day_away(minute: int, hour: int, after: float) -> None:
    due = next_time(f"{minute} {hour} * * *", "America/New_York", after)
    assert due is not None
    # a day in which clocks are set back is an hour longer
    assert after < due <= after + 25 * 3600
