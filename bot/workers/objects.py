"""Objects of the bucket: logs go there when their run is over, and what nobody wants any more goes for good.

The rows are there before the objects, so that nothing lies in the bucket that nobody knows.
"""

import asyncio

from sqlalchemy import select, update

from bot.artifacts.base import Bucket, Seen, SessionOver, md5_of
from bot.store.rows import Change
from bot.store.tables import Artifact, Lease, Object, Run
from bot.workers.base import Worker

LOOK_S = 600.0
# an operator may take the bucket away and give it back
NO_BUCKET_S = 3600.0
ENDED = ("done", "failed", "cancelled")


class Objects(Worker[Object]):
    """Brings each object into the bucket and out of it."""

    noun = "object"
    table = Object

    def pause(self, row: Object) -> float:
        """Nobody waits for it, and an operator has to mend a bucket's rights."""
        return min(3600.0, 2.0 ** min(row.attempts, 12))

    async def step(self, row: Object) -> Change:
        """Send, watch, or remove."""
        bucket = self.services.bucket
        if row.want == "gone":
            return await self._remove(row, bucket)
        if row.state == "kept":
            return Change(state="kept")
        if bucket is None:
            return Change(state=row.state, due_at=self.services.clock() + NO_BUCKET_S)
        return await (self._send(row, bucket) if row.state == "spooled" else self._watch(row))

    async def _send(self, row: Object, bucket: Bucket) -> Change:
        """One step begins the upload and writes its session down, the next one sends, as often as it takes."""
        file = await self.services.artifacts.folder(row.run_id) / row.path
        if not file.is_file():
            return Change(state="gone")
        now = self.services.clock()
        md5 = row.md5 or await asyncio.to_thread(md5_of, file)
        if not row.session:
            session = await bucket.begin(row.address, Seen(row.size, md5))
            return Change(state="spooled", due_at=now, values={"session": session, "md5": md5})
        over = False
        try:
            await bucket.send(row.session, file, row.size)
        except SessionOver:
            over = True
        # an earlier step may have ended the session without having heard so
        if await bucket.look(row.address) == Seen(row.size, md5):
            mine = (Artifact.run_id == row.run_id, Artifact.path == row.path, Artifact.sha256 == row.sha256)
            held = update(Artifact).where(*mine).values(object_id=row.id)
            return Change(state="kept", values={"session": ""}, writes=(held,))
        return Change(state="spooled", due_at=now + self.pause(row), values={"session": ""} if over else {})

    async def _watch(self, row: Object) -> Change:
        """An agent sends it, as long as its lease lives."""
        async with self.services.database.read() as tx:
            held = await tx.scalar(select(Artifact.id).where(Artifact.object_id == row.id))
            lease = await tx.scalar(select(Lease.state).join(Run, Run.lease_id == Lease.id).where(Run.id == row.run_id))
        if held is not None:
            return Change(state="kept", values={"session": ""})
        values = {"want": "gone"} if lease in ENDED else {}
        return Change(state="uploading", due_at=self.services.clock() + (0.0 if values else LOOK_S), values=values)

    async def _remove(self, row: Object, bucket: Bucket | None) -> Change:
        if row.address and bucket is None:
            return Change(state=row.state, due_at=self.services.clock() + NO_BUCKET_S)
        if row.address and bucket is not None:
            await bucket.discard(row.address, row.session)
        async with self.services.database.read() as tx:
            mine = (Artifact.run_id == row.run_id, Artifact.path == row.path, Artifact.removed_at.is_not(None))
            removed = await tx.scalar(select(Artifact.id).where(*mine))
        if removed is not None:
            await self.services.artifacts.remove(row.run_id, row.path)
        return Change(state="gone")
