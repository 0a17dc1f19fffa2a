"""Contents of run folders that were looked at lately, read again when a file has changed."""

import asyncio
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
Signature = frozenset[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    signature: Signature
    contents: T
    points: int
    looked_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`most_points` are kept in all (about 24 bytes each); a folder is looked at again after `fresh_s` seconds."""

    most_points: int = 3_000_000
    fresh_s: float = 2.0


class Shelf(Generic[T]):
    """At most so many points, those unused for longest leave first. Each folder is read by one visitor at a time."""

    def __init__(
        self,
        *,
        read: Callable[[Path], tuple[T, int]],
        executor: Executor,
        clock: Callable[[], float],
        limits: Limits,
    ) -> None:
        self._read = read
        self._executor = executor
        self._clock = clock
        self._limits = limits
        self._kept: OrderedDict[Path, Kept[T]] = OrderedDict()
        self._pending: dict[Path, asyncio.Task[Kept[T]]] = {}

    @property
    def points(self) -> int:
        return sum(kept.points for kept in self._kept.values())

    async def take(self, folders: Mapping[str, Path]) -> dict[str, T]:
        """The contents of the folders, by the same names."""
        found = await asyncio.gather(*(self._one(folder) for folder in folders.values()))
        return dict(zip(folders, (kept.contents for kept in found), strict=True))

    async def _one(self, folder: Path) -> Kept[T]:
        kept = self._kept.get(folder)
        if kept is not None and self._clock() - kept.looked_at < self._limits.fresh_s:
            self._kept.move_to_end(folder)
            return kept
        pending = self._pending.get(folder)
        if pending is None:
            pending = self._pending[folder] = asyncio.create_task(self._look(folder, kept))
            pending.add_done_callback(lambda _: self._pending.pop(folder))
        # the others who wait for it are not to suffer when the first one leaves
        return await asyncio.shield(pending)

    async def _look(self, folder: Path, before: Kept[T] | None) -> Kept[T]:
        now = self._clock()
        loop = asyncio.get_running_loop()
        kept = await loop.run_in_executor(self._executor, self._look_now, folder, before, now)
        self._kept[folder] = kept
        self._kept.move_to_end(folder)
        while len(self._kept) > 1 and self.points > self._limits.most_points:
            self._kept.popitem(last=False)
        return kept

    def _look_now(self, folder: Path, before: Kept[T] | None, now: float) -> Kept[T]:
        signature = _signature(folder)
        if before is not None and before.signature == signature:
            return Kept(signature, before.contents, before.points, now)
        contents, points = self._read(folder)
        return Kept(signature, contents, points, now)


def _signature(folder: Path) -> Signature:
    """Names, sizes and times of change of all files below; empty if there is no such folder."""
    found = set()
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                found.add((path, status.st_size, status.st_mtime_ns))
    return frozenset(found)
