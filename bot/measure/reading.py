"""What was found in the files of one run: curves by run directory and tag, and how healthy the files were."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One tag of one run directory, in the order in which it was written.

    `steps` int64[n], `wall_times` float64[n] in seconds since the epoch (NaN if unknown), `values` float64[n] as
    written, NaN and infinities included. `run` is the directory relative to the folder that was read, "." for the
    folder itself.
    """

    run: str
    tag: str
    steps: NDArray[np.int64]
    wall_times: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def path(self) -> str:
        """`run/tag`, or the tag alone in the folder itself: what a configuration may name."""
        return self.tag if self.run == ROOT else f"{self.run}/{self.tag}"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def non_finite(self) -> int:
        """How many values are NaN or infinite."""
        return int(np.count_nonzero(~np.isfinite(self.values)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the files were like.

    `records` were intact (event records, JSON lines, CSV rows), `bad_records` were damaged and left out, `tail_bytes`
    belong to unfinished last records, `dropped_by_resume` points were written again after a restart, `non_finite`
    values are NaN or infinite and are kept.
    """

    files: int = 0
    records: int = 0
    bad_records: int = 0
    tail_bytes: int = 0
    dropped_by_resume: int = 0
    non_finite: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All curves of one folder, keyed by (run, tag). `notes` are sentences that may quote names found in the files."""

    curves: Mapping[tuple[str, str], Curve]
    health: Health
    notes: tuple[str, ...] = ()


NOTHING = Reading(curves={}, health=Health())
"""What a run has written that wrote nothing."""


def describe(reading: Reading) -> dict[str, Any]:
    """The JSON form of a reading: `{runs: {run: {tag: {...}}}, health: {...}}`, without a value that JSON lacks.

    NaN is the string "NaN", infinities are "Infinity" and "-Infinity". `min` and `max` are those of the finite values,
    null when there is none.
    """
    runs: dict[str, dict[str, object]] = {}
    for (run, tag), curve in sorted(reading.curves.items()):
        if len(curve):
            runs.setdefault(run, {})[tag] = _describe(curve)
    health = reading.health
    return {
        "runs": runs,
        "health": {
            "files": health.files,
            "records": health.records,
            "bad_records": health.bad_records,
            "tail_bytes": health.tail_bytes,
            "dropped_by_resume": health.dropped_by_resume,
        },
    }


def _describe(curve: Curve) -> dict[str, object]:
    finite = curve.values[np.isfinite(curve.values)]
    return {
        "points": len(curve),
        "first": {"step": int(curve.steps[0]), "value": _plain(curve.values[0])},
        "last": {"step": int(curve.steps[-1]), "value": _plain(curve.values[-1])},
        "min": float(finite.min()) if len(finite) else None,
        "max": float(finite.max()) if len(finite) else None,
        "non_finite": len(curve) - len(finite),
    }


def _plain(value: np.float64) -> float | str:
    if np.isfinite(value):
        return float(value)
    return "NaN" if np.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
