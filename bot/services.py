"""The edges of the process, handed to workers and to the web: everything that is not a pure function of rows."""

import asyncio
import contextlib
import os
import secrets
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import insert

from bot.artifacts.base import ArtifactStore, Bucket, Copy
from bot.github.client import GitHub
from bot.measure.weights import Weights, counted, header_end, last_checkpoint, total, weights_of
from bot.settings import Settings
from bot.store.database import Database
from bot.store.leases import objects_of
from bot.store.tables import Incident, Object
from runners.backends.base import Backend
from runners.protocol import CHECKPOINT_FOLDER, is_log

# of each file of a checkpoint in a bucket: most headers are shorter, and none that anybody trains is longer
FIRST_BYTES = 64 * 1024
MOST_HEADER = 32 * 1024 * 1024
MOST_SHARDS = 500


def random_id() -> str:
    """An id that cannot be guessed: 128 bits, 26 characters of a-z and 2-7, so that it may stand in machine names."""
    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    return "".join(secrets.choice(alphabet) for _ in range(26))


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`clock` gives seconds since the epoch. `wake` is called after rows were poked, to spare waiting for a tick."""

    settings: Settings
    database: Database
    github: GitHub | None
    backends: Mapping[str, Backend]
    artifacts: ArtifactStore
    bucket: Bucket | None = None
    clock: Callable[[], float]
    new_id: Callable[[], str] = field(default=random_id)
    wake: Callable[[], None] = field(default=lambda: None)

    @property
    def api(self) -> GitHub:
        """GitHub, for those who only run when there is one."""
        if self.github is None:
            raise RuntimeError("this bot runs without GitHub")
        return self.github

    async def logs_of(self, run_id: str) -> Path:
        """The folder with a run's logs, for readers and TensorBoard; what is only in the bucket is copied first.

        Raises BucketAway.
        """
        folder = await self.artifacts.folder(run_id)
        if self.bucket is None:
            return folder
        async with self.database.read() as tx:
            kept = await objects_of(tx, run_id)
        copies = [Copy(one.path, one.address, one.size, one.sha256) for one in kept.values() if is_log(one.path)]
        if copies:
            await self.bucket.bring(folder, copies)
        with contextlib.suppress(FileNotFoundError):
            os.utime(folder, (self.clock(), self.clock()))  # the least recently used runs make room for others
        return folder

    async def weights_of(self, run_id: str) -> Weights | None:
        """The last checkpoint of a run, from the headers of its safetensors files: no weight leaves the bucket.

        Raises BucketAway.
        """
        folder = (await self.artifacts.folder(run_id)) / CHECKPOINT_FOLDER
        here = await asyncio.to_thread(weights_of, folder)
        if here is not None or self.bucket is None:
            return here
        async with self.database.read() as tx:
            kept = await objects_of(tx, run_id)
        held = {
            path.removeprefix(f"{CHECKPOINT_FOLDER}/"): one
            for path, one in kept.items()
            if path.startswith(f"{CHECKPOINT_FOLDER}/")
        }
        names = last_checkpoint(held)
        if len(names) > MOST_SHARDS:
            return None
        parts = [await self._header(self.bucket, held[name]) for name in names]
        return total(parts) if parts else None

    async def _header(self, bucket: Bucket, one: Object) -> Weights | None:
        try:
            start = await bucket.beginning(one.address, FIRST_BYTES)
            end = header_end(start, one.size)
            if end is None or end > MOST_HEADER:
                return None
            if end > len(start):
                start = await bucket.beginning(one.address, end)
        except FileNotFoundError:
            return None  # somebody deleted it in the bucket
        return await asyncio.to_thread(counted, start, one.size)

    async def incident(self, where: str, error: BaseException) -> str:
        """Keep a bug for the operator; returns the reference that public texts may show."""
        reference = self.new_id()[:10]
        text = "".join(traceback.format_exception(error))
        async with self.database.write() as tx:
            await tx.execute(
                insert(Incident).values(id=reference, happened_at=self.clock(), where=where, traceback=text[-20_000:])
            )
        return reference
