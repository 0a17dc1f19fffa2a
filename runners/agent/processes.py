"""Which processes there are, and ending all that a lease started. Uses /proc, and does with less without it."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36
# a fork bomb is killed in rounds; each round freezes what it sees first
_ROUNDS = 100
_ROUND_S = 0.003


class Process(NamedTuple):
    """A line of the process table; `started` is in clock ticks since boot, so (pid, started) is never reused."""

    pid: int
    parent: int
    group: int
    state: str
    started: int


def read_process(pid: int) -> Process | None:
    """The process now, None when it is gone or this system has no /proc."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # the name stands in parentheses and may hold anything, parentheses too
    fields = text[text.rindex(")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[2]), fields[0], int(fields[19]))


def all_processes() -> list[Process]:
    """Every process that can be seen; empty without /proc."""
    if not _PROC.is_dir():
        return []
    found = (read_process(int(name)) for name in os.listdir(_PROC) if name.isdigit())
    return [process for process in found if process is not None]


def is_alive(pid: int, started: int) -> bool:
    """Whether that very process is still running; a zombie is not."""
    if not _PROC.is_dir():
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return True
    process = read_process(pid)
    return process is not None and process.started == started and process.state not in "ZX"


def uid_of(pid: int) -> int | None:
    """The real user of a process; None when it is gone."""
    try:
        text = (_PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return None
    # the owner of /proc/PID is root for a process that hides its memory, so that is not asked
    found = re.search(r"^Uid:\s+(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else None


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with, as far as we may read it."""
    try:
        raw = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.decode("utf-8", "replace").partition("=") for item in raw.split(b"\0") if b"=" in item)
    return {name: value for name, _, value in pairs}


def descendants(roots: Iterable[int]) -> list[Process]:
    """All processes below `roots`, the roots themselves not included, zombies included."""
    children: dict[int, list[Process]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = list(roots)
    while queue:
        below = children.pop(queue.pop(), [])
        found.extend(below)
        queue.extend(process.pid for process in below)
    return found


def become_subreaper() -> None:
    """Make orphans of our descendants our own children, so that a daemon cannot slip away. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def send(pid: int, number: int) -> None:
    """A signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def send_group(group: int, number: int) -> None:
    """A signal to a process group that may be gone already."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def kill_user(uid: int) -> None:
    """End every process of a user that is ours alone; one call of the kernel, so nothing can fork away from it."""
    subprocess.run(
        ["/bin/sh", "-c", "kill -KILL -1"],
        user=uid,
        group=uid,
        extra_groups=[],
        env={},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def kill_below(root: int) -> int:
    """End everything below `root`, which itself lives on; returns how many living processes there were.

    Zombies whose parent is this process are collected.
    """
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        below = descendants([root])
        living = [process for process in below if process.state not in "ZX"]
        seen.update(process.pid for process in living)
        for process in living:
            send(process.pid, signal.SIGSTOP)
        for process in living:
            send(process.pid, signal.SIGKILL)
        reap(below)
        if not living:
            break
        time.sleep(_ROUND_S)
    return len(seen)


def kill_all_of(uid: int) -> int:
    """End every process of a user that is ours alone; returns how many there were."""
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        living = [one.pid for one in all_processes() if one.state not in "ZX" and uid_of(one.pid) == uid]
        seen.update(living)
        if not living:
            break
        kill_user(uid)
        time.sleep(_ROUND_S)
    return len(seen)


def working_in(folder: Path) -> list[int]:
    """Processes that stand in a folder or were started with a variable that names a path in it; not ourselves."""
    found = []
    for process in all_processes():
        try:
            place = os.readlink(_PROC / str(process.pid) / "cwd")
        except OSError:
            place = ""
        values = [place, *environment_of(process.pid).values()]
        if process.pid != os.getpid() and any(f"{value}/".startswith(f"{folder}/") for value in values):
            found.append(process.pid)
    return found


def reap(below: Iterable[Process]) -> None:
    """Collect the exit statuses of our own children among `below`, so that no zombie stays."""
    for process in below:
        if process.parent == os.getpid():
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue
