"""What a row of named values means, for JSON lines and for CSV alike.

Numbers are values, also when they are written as text ("0.5", "NaN", "inf"). Truth values, empty texts, other texts
and null are no values. The step is the first of `step`, `global_step`, `iteration`, `epoch` that is a whole number;
else the number of the row, from 0. The time is the first of `wall_time`, `timestamp`, `time`, in seconds or ISO 8601.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from bot.measure.readers.merging import FileContents

STEPS = ("step", "global_step", "iteration", "epoch")
TIMES = ("wall_time", "timestamp", "time")
MOST_STEP = 2**62


def take_row(row: Mapping[str, object], at: int, contents: FileContents) -> None:
    """Add the values of one row, the `at`-th from 0."""
    flat = dict(_flat(row))
    step, step_key = _step(flat, at)
    wall_time, time_key = _time(flat)
    for tag, value in flat.items():
        number = _number(value)
        if number is None or tag in (step_key, time_key):
            continue
        points = contents.points(tag)
        if points is not None:
            points.add(step, wall_time, number)


def _flat(row: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _step(row: Mapping[str, object], at: int) -> tuple[int, str]:
    for key in STEPS:
        number = _number(row.get(key))
        if number is not None and math.isfinite(number) and number == int(number) and abs(number) <= MOST_STEP:
            return int(number), key
    return at, ""


def _time(row: Mapping[str, object]) -> tuple[float, str]:
    for key in TIMES:
        value = row.get(key)
        number = _number(value)
        if number is not None and math.isfinite(number):
            return number, key
        if isinstance(value, str):
            seconds = _iso(value)
            if seconds is not None:
                return seconds, key
    return math.nan, ""


def _iso(text: str) -> float | None:
    whole, dot, rest = text.partition(".")
    digits = "".join(ch for ch in rest if ch.isdigit()) if dot else ""
    zone = rest.lstrip("0123456789") if dot else ""
    try:
        # nanoseconds are more than the standard library reads
        moment = datetime.fromisoformat(f"{whole}{zone}" if dot else text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.timestamp() + (float(f"0.{digits}") if digits else 0.0)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    # underscores and other alphabets' digits are Python's, not a data file's
    if isinstance(value, str) and value.isascii() and "_" not in value:
        try:
            return float(value)
        except ValueError:
            return None
    return None
