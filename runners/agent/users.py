"""Users for the code of leases, one each. All bots and pool hosts of one computer share the register."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runners.agent import processes


@contextmanager
def taken_for(mark: Path, uids: Sequence[int], busy: set[int]) -> Iterator[int | None]:
    """A user id of `uids` that is free, None when there is none. It is taken for as long as the file `mark` exists.

    The caller makes that file before it leaves; ids in `busy` are left alone. Only for root. Raises OSError.
    """
    place = _place()
    with (place / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        living = {processes.uid_of(process.pid) for process in processes.all_processes()} | busy
        free = (uid for uid in uids if uid not in living and not _held(place / str(uid)))
        uid = next(free, None)
        if uid is not None:
            (place / str(uid)).write_text(str(mark))
        yield uid


def is_of(uid: int, mark: Path) -> bool:
    """Whether a user is still taken for `mark`: after a restart of the computer it may be another one's."""
    return _held(_place() / str(uid)) == mark


def _held(entry: Path) -> Path | None:
    """What a user is taken for. One whose agent has ended is not free before its machine has been deleted."""
    mark = Path(entry.read_text()) if entry.exists() else None
    return mark if mark and mark.exists() else None


def _place() -> Path:
    place = (Path("/run") if Path("/run").is_dir() else Path("/var/tmp")) / "benchbot-uids"
    place.mkdir(exist_ok=True, mode=0o700)
    info = place.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise PermissionError(f"{place} belongs to somebody else")
    return place
