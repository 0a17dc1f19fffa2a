"""Runs that have nothing left to learn: a metric that has become NaN or infinite and stays so."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from bot.measure.curves import diverged_at
from bot.measure.metrics import Metric
from bot.measure.patterns import expand
from bot.measure.picking import find_curve
from bot.measure.readers.following import Follower
from bot.measure.reading import Curve, Reading

LAST = 3
"""So many values in a row at the end are no numbers: one alone is what a skipped step of mixed precision looks like."""

_MOST = 100


class Divergence:
    """Follows the logs of runs while they go on; what was read is kept for the runs that were looked at lately."""

    def __init__(self) -> None:
        self._followed: OrderedDict[str, tuple[Follower, Reading | None]] = OrderedDict()

    def look(self, run_id: str, logs: Path, metrics: Sequence[Metric]) -> str:
        """Why the run should be stopped; empty while there is hope. Reads files, so it belongs in a thread."""
        follower, reading = self._followed.pop(run_id, (Follower(logs), None))
        reading = follower.poll() or reading
        self._followed[run_id] = follower, reading
        while len(self._followed) > _MOST:
            self._followed.popitem(last=False)
        for name, curve in _watched(metrics, reading):
            step = diverged_at(curve, LAST)
            if step is None:
                continue
            since = f"{name} is {curve.values[-1]} since step {step}"
            return f"The training diverged and was stopped: {since}."
        return ""


def _watched(metrics: Sequence[Metric], reading: Reading | None) -> list[tuple[str, Curve]]:
    """The curves of all metrics by the names of these; for a pattern, of each that it fits."""
    found: list[tuple[str, Curve]] = []
    if reading is None:
        return found
    for metric in metrics:
        for one in expand(metric, [reading], [])[0]:
            curve = find_curve(one, reading)
            found += [(one.name, curve)] if curve is not None else []
    return found
