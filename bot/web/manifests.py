"""Manifests: an agent says which files a run has, and hears which of them are missing and where their bytes go.

Without a bucket all go to the server's disk. With one, only logs of moderate size do, which pages read while they grow;
the bot moves them to the bucket when the run is over.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from sqlalchemy import Executable, delete, insert, select, update

from bot.artifacts.base import Bucket, BucketAway, BucketRefused, Seen, SessionOver, checked
from bot.services import Services
from bot.store.database import insert_into
from bot.store.leases import unwanted
from bot.store.rows import write_all
from bot.store.tables import Artifact, Lease, Object, Run
from bot.web.agent_api import body_of, fail, member_of, run_of_lease
from bot.web.keys import SERVICES
from runners.protocol import CHECKPOINT_FOLDER, MOST_WANTED, is_log

MAX_RUN_BYTES = 20 * 1024**3
# with a bucket: what the server's disk holds of one log, and of one run
SPOOL_FILE_BYTES = 32 * 1024**2
SPOOL_RUN_BYTES = 256 * 1024**2
# an upload that nobody asks about is looked at again
LOOK_S = 600.0
_AT_ONCE = 8

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A file that the run has: as its host calls it (`told`), and its name here.

    Through the bot it may come under another name first, `sent_as`.
    """

    told: str
    path: str
    sent_as: str
    size: int
    sha256: str
    md5: str

    @property
    def seen(self) -> Seen:
        """What the bucket shall have."""
        return Seen(self.size, self.md5)


async def manifest(request: web.Request, lease: Lease) -> web.Response:
    """Files with their hashes; the answer names what differs and where it is to be sent.

    What was sent under another name gets its own one here, so that an older file of this name stays until the newer one
    has arrived whole. In a `complete` manifest all checkpoints are named: others are removed.
    """
    services, body = request.app[SERVICES], await body_of(request)
    run = await run_of_lease(request, lease)
    try:
        sent = [_sent(entry, member_of(request)) for entry in body.get("files", [])]
    except (ValueError, TypeError, KeyError):
        return fail(400, "an entry needs a plain path, size, sha256 and md5")
    async with services.database.read() as tx:
        known = {one.path: one for one in await tx.scalars(select(Artifact).where(Artifact.run_id == run.id))}
        going = select(Object).where(Object.run_id == run.id, Object.state == "uploading", Object.want == "")
        uploading = {(one.path, one.sha256): one for one in await tx.scalars(going)}
    files = {file.path: file for file in sent}
    shelf = _Shelf(services, run, known, uploading)
    await shelf.settle(files)
    async with services.database.write() as tx:
        await write_all(tx, tuple(shelf.writes))
    if body.get("complete") and not shelf.wanted and not shelf.later and not member_of(request):
        await _keep_only(services, run, set(files) - {entry["path"] for entry in shelf.refused})
    return web.json_response({"wanted": shelf.wanted, "refused": shelf.refused, "later": shelf.later})


def named(member: int, path: str) -> str:
    """A file's name here: the hosts of a lease other than the first have a folder each. Raises ValueError."""
    return str(checked(f"host-{member}/{path}" if member else path))


def _sent(entry: Json, member: int) -> Sent:
    told = str(entry["path"])
    path, sent_as = named(member, told), named(member, entry.get("sent_as") or told)
    size, md5 = entry["size"], str(entry.get("md5", ""))
    if not isinstance(size, int) or size < 0 or not re.fullmatch(r"([0-9a-f]{32})?", md5):
        raise ValueError("no size or no hash")
    return Sent(told, path, sent_as, size, str(entry["sha256"]), md5)


@dataclass(slots=True)
class _Shelf:
    """The files of one run as they are known, and what one manifest changes about them."""

    services: Services
    run: Run
    known: Mapping[str, Artifact]
    uploading: Mapping[tuple[str, str], Object]
    wanted: list[Json] = field(default_factory=list)
    refused: list[Json] = field(default_factory=list)
    writes: list[Executable] = field(default_factory=list)
    later: bool = False
    _begun: int = 0

    async def settle(self, files: Mapping[str, Sent]) -> None:
        """Confirm what is whole; ask for the rest, as far as one answer may."""
        bucket = self.services.bucket
        direct = [] if bucket is None else self._direct(files)
        for file in files.values():
            if file.path not in direct and len(self.wanted) < MOST_WANTED:
                await self._on_disk(file)
        if bucket is None:
            return
        places = asyncio.Semaphore(_AT_ONCE)
        no: list[BucketRefused] = []

        async def one(file: Sent) -> None:
            async with places:
                if self.later or no or len(self.wanted) >= MOST_WANTED:
                    return
                try:
                    await self._in_bucket(bucket, file)
                except BucketAway:
                    self.later = True
                except BucketRefused as error:
                    no.append(error)

        await asyncio.gather(*(one(files[path]) for path in direct))
        if no:
            await self._refuse([files[path] for path in direct], no[0])

    async def _refuse(self, files: list[Sent], error: BucketRefused) -> None:
        """The operator has to mend something: results come without what the bucket should have kept."""
        reference = await self.services.incident(f"uploads of run {self.run.id}", error)
        sentence = f"the bucket did not take it; the operator finds why under the reference {reference}"
        self.refused += [{"path": file.told, "sentence": sentence} for file in files if not self._kept(file)]
        self.wanted = [entry for entry in self.wanted if "url" not in entry]

    def _direct(self, files: Mapping[str, Sent]) -> list[str]:
        """The files whose bytes do not come through the bot: checkpoints, and logs that its disk has no room for."""
        here = {path: one.size for path, one in self.known.items() if not one.object_id}
        direct = []
        for file in files.values():
            spooled = here | {file.path: file.size}
            if is_log(file.path) and file.size <= SPOOL_FILE_BYTES and sum(spooled.values()) <= SPOOL_RUN_BYTES:
                here = spooled
            else:
                direct.append(file.path)
        return direct

    def _kept(self, file: Sent) -> bool:
        known = self.known.get(file.path)
        return known is not None and bool(known.object_id) and known.sha256 == file.sha256

    async def _on_disk(self, file: Sent) -> None:
        if self._kept(file):
            return
        disk, run_id = self.services.artifacts, self.run.id
        have = await disk.size(run_id, file.sent_as) if file.sent_as in self.known else -1
        if have == file.size and await disk.sha256(run_id, file.sent_as) == file.sha256:
            if file.sent_as != file.path:
                await disk.rename(run_id, file.sent_as, file.path)
            self._confirm(file)
        elif file.sent_as != file.path and await self._has(file):
            self._confirm(file)
        else:
            if have >= file.size:
                await disk.truncate(run_id, file.sent_as, 0)
            self.wanted.append({"path": file.told, "offset": have if 0 < have < file.size else 0})

    async def _has(self, file: Sent) -> bool:
        disk, known = self.services.artifacts, file.path in self.known
        same = known and await disk.size(self.run.id, file.path) == file.size
        return same and await disk.sha256(self.run.id, file.path) == file.sha256

    async def _in_bucket(self, bucket: Bucket, file: Sent) -> None:
        if self._kept(file):
            return
        known = self.known.get(file.path)
        one = self.uploading.get((file.path, file.sha256))
        if one is not None:
            seen = await bucket.look(one.address)
            if seen == file.seen:
                if known is not None and not known.object_id:
                    # part of a log that outgrew the disk; readers get the whole one from the bucket
                    await self.services.artifacts.remove(self.run.id, file.path)
                self._confirm(file, one.id)
                return
            if seen is None and await _takes(bucket, one):
                self.wanted.append({"path": file.told, "url": one.session})
                return
            self.writes.append(unwanted(Object.id == one.id))
        await self._begin(bucket, file)

    async def _begin(self, bucket: Bucket, file: Sent) -> None:
        """Write the object down, then begin it: nothing may lie in the bucket that no row knows."""
        taken = sum(one.size for one in self.known.values()) + sum(one.size for one in self.uploading.values())
        if taken + self._begun + file.size > MAX_RUN_BYTES:
            self.refused.append({"path": file.told, "sentence": "the run has larger files than are kept"})
            return
        self._begun += file.size
        services, object_id, now = self.services, self.services.new_id(), self.services.clock()
        row = {"id": object_id, "state": "uploading", "due_at": now + LOOK_S, "created_at": now, "run_id": self.run.id}
        about = {"path": file.path, "size": file.size, "sha256": file.sha256, "md5": file.md5}
        address = bucket.address(self.run.id, object_id, file.path)
        async with services.database.write() as tx:
            await tx.execute(insert(Object).values(**row, **about, address=address))
        session = await bucket.begin(address, file.seen)
        self.writes.append(update(Object).where(Object.id == object_id).values(session=session))
        self.wanted.append({"path": file.told, "url": session})

    def _confirm(self, file: Sent, object_id: str = "") -> None:
        """The file is whole: it takes the place of an older one, whose object goes."""
        values = {"size": file.size, "sha256": file.sha256, "object_id": object_id}
        row = insert_into(self.services.database, Artifact).values(
            id=self.services.new_id(), run_id=self.run.id, path=file.path, **values
        )
        if file.sent_as != file.path:
            mine = (Artifact.run_id == self.run.id, Artifact.path == file.sent_as)
            self.writes.append(delete(Artifact).where(*mine))
        self.writes.append(row.on_conflict_do_update(index_elements=["run_id", "path"], set_=values))
        old = self.known.get(file.path)
        if old is not None and old.object_id and old.object_id != object_id:
            self.writes.append(unwanted(Object.id == old.object_id))
        if object_id:
            kept = {"state": "kept", "due_at": None, "session": ""}
            self.writes.append(update(Object).where(Object.id == object_id).values(**kept))


async def _takes(bucket: Bucket, one: Object) -> bool:
    """Whether the session of an upload that was begun goes on."""
    if not one.session:
        return False
    try:
        await bucket.offset(one.session, one.size)
    except SessionOver:
        return False
    return True


async def _keep_only(services: Services, run: Run, paths: set[str]) -> None:
    """Remove checkpoints that the run itself has not kept to its end."""
    async with services.database.write() as tx:
        known = await tx.scalars(select(Artifact).where(Artifact.run_id == run.id))
        gone = [one for one in known if one.path.startswith(f"{CHECKPOINT_FOLDER}/") and one.path not in paths]
        await tx.execute(delete(Artifact).where(Artifact.id.in_([one.id for one in gone])))
        await tx.execute(unwanted(Object.id.in_([one.object_id for one in gone if one.object_id])))
    for one in gone:
        if not one.object_id:
            await services.artifacts.remove(run.id, one.path)
