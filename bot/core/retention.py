"""Which files have outlived their use: all but those of the last good and bad results of each benchmark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

GOOD = ("no change", "improvement", "passed", "new")
# logs are small, and what curves of last month looked like is asked for long after its weights
LOGS_TIMES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One benchmark of a request that has ended, and what it came to. Of what runs nothing may be said here."""

    request_id: str
    benchmark: str
    finished_at: float
    verdict: str | None

    @property
    def good(self) -> bool:
        """Nothing that somebody has to look at."""
        return self.verdict in GOOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlived:
    """What goes of one benchmark of a request: its checkpoints, and `logs_too` when it is older still."""

    request_id: str
    benchmark: str
    logs_too: bool


def outlived(ended: Iterable[Ended], keep_good: int, keep_bad: int) -> Sequence[Outlived]:
    """What goes of the results of one repository.

    Of each benchmark the last `keep_good` good and `keep_bad` bad results keep all files, and ten times as many of
    each keep their logs.
    """

    def kind(one: Ended) -> tuple[str, bool]:
        return one.benchmark, one.good

    gone = []
    for (benchmark, good), group in groupby(sorted(ended, key=kind), key=kind):
        most = keep_good if good else keep_bad
        newest_first = sorted(group, key=lambda one: (one.finished_at, one.request_id), reverse=True)
        for place, one in enumerate(newest_first[most:], most):
            logs_too = place >= most * LOGS_TIMES
            gone.append(Outlived(request_id=one.request_id, benchmark=benchmark, logs_too=logs_too))
    return gone
