"""Runs that somebody is looking at: one look at the files for all who watch, and each is told what it has not seen.

A watch begins with its first viewer and ends with its last one, or when the run has ended and everything was read.
"""

import asyncio
import codecs
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.artifacts.base import BucketAway
from bot.measure.readers.following import Follower
from bot.measure.readers.tailing import Tail
from bot.measure.reading import Curve
from bot.report.masking import Masker
from bot.services import Services
from bot.store.tables import Run
from runners.protocol import LOG_FILE, LOG_FOLDER

log = logging.getLogger("benchbot.web")

EVERY_S = 0.1
STATE_EVERY_S = 1.0
# a look that takes long is not repeated at once: at most a sixth of one core for each watch
_REST = 5.0
# agents keep two
MOST_LOG_BYTES = 8 * 1024 * 1024
_PIECE = 1 << 20
MOST_WATCHES = 50
ENDED = ("done", "failed", "cancelled")

Curves = Mapping[tuple[str, str], Curve]


class TooManyError(Exception):
    """More runs are watched than one process looks at."""


@dataclass(slots=True)
class _Log:
    """The log as everybody may read it, at most its first 8 MB. What has been shown never changes."""

    shown: bytearray = field(default_factory=bytearray)
    _tail: Tail = field(default_factory=Tail)
    _masker: Masker = field(default_factory=Masker)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def poll(self, path: Path) -> bool:
        """Whether there is more of it. One that was begun anew goes on where it was."""
        if not path.is_file() or path.is_symlink():
            return False
        before, most = len(self.shown), MOST_LOG_BYTES - self._tail.place
        while most > 0:
            data, _ = self._tail.read(path, min(most, _PIECE))
            if not data:
                break
            self.shown += self._masker.feed(self._decoder.decode(data)).encode()
            most = MOST_LOG_BYTES - self._tail.place
        return len(self.shown) > before

    def close(self) -> None:
        """The run has ended: the unfinished last line is shown, too."""
        self.shown += self._masker.feed(self._decoder.decode(b"", final=True)).encode() + self._masker.close().encode()


class Watch:
    """One run. `version` grows with each change of `state`, `log` or `curves`; `ended` says that there will be no
    more."""

    def __init__(self, services: Services, run: Run) -> None:
        self.state, self.ended, self.version = run.state, False, 0
        self.curves: Curves = {}
        self._services, self._run = services, run.id
        self._log = _Log()
        self._changed = asyncio.Condition()
        self.viewers = 0

    @property
    def log(self) -> bytearray:
        """What may be shown of the log."""
        return self._log.shown

    async def after(self, version: int, timeout_s: float) -> None:
        """Returns when there is something newer than `version`, or after `timeout_s`."""
        async with self._changed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait_for(lambda: self.version > version), timeout_s)

    async def look(self) -> None:
        """Look until the run has ended and there is nothing more to read."""
        try:
            folder = await self._services.logs_of(self._run)
            follower, asked_at, state = Follower(folder / LOG_FOLDER), 0.0, self.state
            while not self.ended:
                began = time.monotonic()
                if began - asked_at >= STATE_EVERY_S:
                    asked_at, state = began, await self._ask()
                if state in ENDED:
                    # what was kept elsewhere is all there now
                    await self._services.logs_of(self._run)
                changed = await asyncio.to_thread(self._read, follower, folder / LOG_FILE)
                if state in ENDED and not changed:
                    self._log.close()
                    self.ended = True
                if changed or self.ended or state != self.state:
                    self.state = state
                    await self._tell()
                if state not in ENDED:
                    await asyncio.sleep(max(EVERY_S, _REST * (time.monotonic() - began)))
        except BucketAway as away:
            log.warning("run %s is not watched any longer: %s", self._run, away)
        finally:
            self.ended = True
            await self._tell()

    async def _ask(self) -> str:
        async with self._services.database.read() as tx:
            run = await tx.get(Run, self._run)
        # a row that is gone was forgotten: nobody writes any more
        return run.state if run else "done"

    def _read(self, follower: Follower, log: Path) -> bool:
        more = self._log.poll(log)
        reading = follower.poll()
        if reading is not None:
            self.curves = reading.curves
        return more or reading is not None

    async def _tell(self) -> None:
        async with self._changed:
            self.version += 1
            self._changed.notify_all()


class Watches:
    """The watches of this process, by run."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open: dict[str, tuple[Watch, asyncio.Task[None]]] = {}

    @contextlib.asynccontextmanager
    async def of(self, run: Run) -> AsyncIterator[Watch]:
        """The watch of a run, shared by all its viewers. Raises TooManyError."""
        if run.id not in self._open:
            if len(self._open) >= MOST_WATCHES:
                raise TooManyError
            begun = Watch(self._services, run)
            self._open[run.id] = begun, asyncio.create_task(begun.look())
        watch, task = self._open[run.id]
        watch.viewers += 1
        try:
            yield watch
        finally:
            watch.viewers -= 1
            if not watch.viewers:
                del self._open[run.id]
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """End all watches, so that their viewers end."""
        for _, task in tuple(self._open.values()):
            task.cancel()


def masked_log(path: Path, *, ended: bool) -> bytes:
    """A log as everybody may read it, at most its first 8 MB; nothing if it does not exist.

    What is masked begins with the file: a secret may lie on both sides of any cut. An unfinished last line comes when
    it is finished, so that what has been shown never changes.
    """
    found = _Log()
    found.poll(path)
    if ended:
        found.close()
    return bytes(found.shown)
