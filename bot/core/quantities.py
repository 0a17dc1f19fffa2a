"""Durations, whole numbers and amounts of money as people write them; each reader gives None for anything else."""

import re
from datetime import UTC, datetime

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
LONGEST_S = 30 * SECONDS["d"]
_DURATION = re.compile(r"(?:([0-9]{1,4})d)?(?:([0-9]{1,4})h)?(?:([0-9]{1,5})m(?:in)?)?(?:([0-9]{1,7})s)?")


def seconds(text: str) -> int | None:
    """Seconds of `90m`, `6h`, `1h30m`, `2d`; more than 0 and at most 30 days. A number without a unit is None."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        return None
    total = sum(int(count or 0) * unit for count, unit in zip(match.groups(), SECONDS.values(), strict=True))
    return total if 0 < total <= LONGEST_S else None


def duration(total_s: int) -> str:
    """The shortest exact text: `1h30m` for 5400."""
    parts = []
    for name, unit in SECONDS.items():
        count, total_s = divmod(total_s, unit)
        if count:
            parts.append(f"{count}{name}")
    return "".join(parts) or "0s"


def moment(at: float) -> str:
    """Seconds since the epoch as `2026-12-01 07:08 UTC`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def whole(text: str, lowest: int, highest: int) -> int | None:
    """A whole number in plain digits between two bounds, both included."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        return None
    number = int(text)
    return number if lowest <= number <= highest else None


def decimal(text: str) -> float | None:
    """A finite number in plain digits, with point or exponent."""
    if not re.fullmatch(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?", text) or len(text) > 40:
        return None
    number = float(text)
    return number if abs(number) < float("inf") else None


def dollars(text: str) -> float | None:
    """US dollars of `20`, `20usd`, `$20`, `2.50 USD`; more than 0 and at most a million."""
    match = re.fullmatch(r"\$?([0-9]{1,7}(?:\.[0-9]{1,2})?)\s?(?:usd)?", text.strip().lower())
    if match is None:
        return None
    amount = float(match.group(1))
    return amount if 0 < amount <= 1_000_000 else None
