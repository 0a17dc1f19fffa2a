"""Quantities as people read them: numbers with their units, signs, times and money."""

import math
from collections.abc import Iterable

from bot.core.quantities import moment

MINUS = "−"


def number(value: float, decimals: int | None = None) -> str:
    """`75.1`, `0.00823`, `1.2e+09`, `NaN`; four significant digits unless `decimals` is given."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if size and not 1e-4 <= size < 1e7:
        text = f"{value:.3g}"
    else:
        text = f"{value:.{_decimals(size) if decimals is None else decimals}f}"
        if decimals is None and "." in text:
            text = text.rstrip("0").rstrip(".")
    if not float(text):
        # what is rounded away has no sign
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(value: float, decimals: int | None = None) -> str:
    """A number that always shows its sign, zero excepted."""
    text = number(value, decimals)
    return text if text.startswith(MINUS) or text == "NaN" or not float_of(text) else f"+{text}"


def float_of(text: str) -> float:
    """The number in a text made by `number`."""
    return math.inf if text == "∞" else float(text.replace(MINUS, "-"))


def decimals_for(values: Iterable[float], difference: float | None = None) -> int:
    """How many decimals make a difference visible in two digits and keep each value within three to five digits."""
    sizes = [abs(value) for value in values if math.isfinite(value) and value]
    if not sizes:
        return 0
    top = math.floor(math.log10(max(sizes)))
    least, most = max(0, 2 - top), max(0, 4 - top)
    if difference is None or not math.isfinite(difference) or not difference:
        return least
    return min(most, max(least, 1 - math.floor(math.log10(abs(difference)))))


def decimals_of_difference(values: Iterable[float]) -> int:
    """How many decimals show the largest of some differences in two digits."""
    sizes = [abs(value) for value in values if math.isfinite(value) and value]
    return min(9, max(0, 1 - math.floor(math.log10(max(sizes))))) if sizes else 0


def duration(seconds: float) -> str:
    """`8.2 s`, `45 s`, `3 min 20 s`, `2 h 5 min`, `1 d 3 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    units = (("d", "h", 86_400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1))
    large, small, size, step = next(unit for unit in units if whole >= unit[2])
    rest = whole % size // step
    return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")


def money(usd: float) -> str:
    """`$0.42`, `$1,204`; less than a cent is `under $0.01`."""
    if 0 < usd < 0.01:
        return "under $0.01"
    return f"${usd:,.2f}" if usd < 1000 else f"${usd:,.0f}"


def size(count: int) -> str:
    """A number of bytes: `512 B`, `1.4 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def removed(seconds: float) -> str:
    """What is said of a file that is kept no more: `removed on 2026-12-01 by retention`."""
    return f"removed on {moment(seconds)[:10]} by retention"


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _decimals(size: float) -> int:
    return max(0, 3 - math.floor(math.log10(size))) if size else 0
