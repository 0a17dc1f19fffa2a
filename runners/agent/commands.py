"""One command in a process group of its own: started as the right user, timed, ended, and nothing of it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runners.agent import devices, processes

_READ_BYTES = 64 * 1024
# how long to wait for the last output once everything that could write it is dead
_DRAIN_S = 5.0


# the reason for stopping that another machine makes good
TAKEN_AWAY = "the machine is being taken away"


class Stop:
    """Why everything must end now; empty while nothing must. Commands that run are woken when it is set."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.gone = threading.Event()
        self._reason = ""
        self.aborted = ""

    @property
    def reason(self) -> str:
        """Why the lease must end, or the run that goes on now."""
        return self._reason or self.aborted

    def set(self, reason: str) -> None:
        """Name the reason; the first one stays."""
        with self.changed:
            self._reason = self._reason or reason
            self.changed.notify_all()

    def abort(self, reason: str) -> None:
        """End the run that goes on, and nothing else; an empty reason clears that for the next run."""
        with self.changed:
            self.aborted = reason
            self.changed.notify_all()


@dataclass(frozen=True)
class Command:
    """What to start, and how long it may take."""

    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    timeout_s: float
    uid: int | None = None
    kill_after_s: float = 10.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: `exit` as a shell says it (128 + signal), `cause` is "", "timeout" or why we stopped it."""

    exit: int
    seconds: float
    peak_rss_bytes: int
    cause: str
    left_behind: int = 0


def shell_words(line: str) -> tuple[str, ...]:
    """The words that run a shell line: bash where there is one, because that is what people write for."""
    for shell in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"):
        if os.access(shell, os.X_OK):
            return (shell, "-c", line)
    return ("/bin/sh", "-c", line)


def execute(command: Command, stop: Stop, output: Callable[[bytes], None], sweep: Callable[[], int]) -> Ended:
    """Run a command to its end, giving its output piecewise to `output` in another thread.

    `sweep` ends what the command left running and says how many that were. Raises OSError when the command cannot
    be started at all.
    """
    began = time.monotonic()
    process = _start(command)
    reader = threading.Thread(target=_read, args=(process, output), daemon=True)
    reader.start()
    guard = _Guard(process.pid, command, stop)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    guard.done()
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    process.returncode = code
    processes.send_group(process.pid, signal.SIGKILL)
    left_behind = sweep()
    reader.join(_DRAIN_S)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Ended(code, seconds, peak, guard.cause, left_behind)


def _start(command: Command) -> subprocess.Popen[bytes]:
    identity: dict[str, object] = {}
    if command.uid is not None:
        identity = {"user": command.uid, "group": command.uid, "extra_groups": devices.groups()}
    process: subprocess.Popen[bytes] = subprocess.Popen(
        command.words,
        cwd=command.folder,
        env=dict(command.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        umask=0o022,
        **identity,  # type: ignore[call-overload] # the three names are as Popen wants them
    )
    return process


def _read(process: subprocess.Popen[bytes], output: Callable[[bytes], None]) -> None:
    pipe = process.stdout
    if pipe is None:
        return
    with pipe:
        while True:
            data = os.read(pipe.fileno(), _READ_BYTES)
            if not data:
                return
            output(data)


class _Guard:
    """Ends the command when its time is over or everything must stop: politely first, then for good."""

    def __init__(self, pid: int, command: Command, stop: Stop) -> None:
        self.cause = ""
        self._pid = pid
        self._command = command
        self._stop = stop
        self._over = False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def done(self) -> None:
        """The command has ended by itself or by us."""
        with self._stop.changed:
            self._over = True
            self._stop.changed.notify_all()
        self._thread.join()

    def _watch(self) -> None:
        changed = self._stop.changed
        with changed:
            changed.wait_for(lambda: self._over or bool(self._stop.reason), self._command.timeout_s)
            if self._over:
                return
            self.cause = self._stop.reason or "timeout"
            processes.send_group(self._pid, signal.SIGTERM)
            changed.wait_for(lambda: self._over, self._command.kill_after_s)
            if not self._over:
                processes.send_group(self._pid, signal.SIGKILL)
