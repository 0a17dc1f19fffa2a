"""When a schedule is due: five fields of cron in a time zone.

The rule of Debian's cron holds when clocks are changed: a time that is skipped is made up for as soon as the clock has
jumped, a time that comes twice counts once; schedules that run every hour or more often follow the clock.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

FIELDS = {
    "minute": ("minute", "from 0 to 59"),
    "hour": ("hour", "from 0 to 23"),
    "day-of-month": ("day of the month", "from 1 to 31"),
    "month": ("month", "from 1 to 12, or jan to dec"),
    "day-of-week": ("day of the week", "from 0 to 7, or sun to sat"),
}


def wrong_field(cron: str) -> tuple[int, str, str] | None:
    """Which of the five fields is wrong (from 0), what it stands for and how it is written; None when all are right.

    Raises ValueError when there are not five.
    """
    if len(cron.split()) != len(FIELDS):
        raise ValueError(f"{cron} has {len(cron.split())} fields; a schedule has five")
    try:
        CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        return list(FIELDS).index(name), *FIELDS[name]
    return None


def next_time(cron: str, timezone: str, after: float) -> float | None:
    """The first time after `after` at which the schedule is due; both in seconds since the epoch.

    None when it never is again. Raises ValueError for a schedule or a time zone that does not exist.
    """
    try:
        times = CronSim(cron, datetime.fromtimestamp(after, ZoneInfo(timezone)))
    except CronSimError as error:
        raise ValueError(str(error)) from error
    due = next(times, None)
    return None if due is None else due.timestamp()
