"""The outbox: makes GitHub equal to the messages we want shown. One message is one thing on GitHub, for ever.

Before anything is created a second time, GitHub is asked whether the first time arrived: its answers get lost.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bot.github.client import Denied, GitHub, Gone, Where
from bot.store.codec import load
from bot.store.rows import Change
from bot.store.tables import Message, Repository
from bot.workers.base import Worker


class Outbox(Worker[Message]):
    """Sends one message at a time; what GitHub refuses for good is dropped, what may pass is tried again."""

    noun = "message"
    table = Message

    async def step(self, row: Message) -> Change:
        """Create or change the one thing that this message is."""
        wanted = load(dict[str, Any], row.wanted)
        digest = hashlib.sha256(row.wanted.encode()).hexdigest()
        if row.sent == digest:
            return Change(state="sent")
        async with self.services.database.read() as tx:
            repository = await tx.get(Repository, row.repository_id)
        if repository is None:
            return Change(state="dropped")
        where = Where(repository_id=repository.id, installation_id=repository.installation_id)
        send = {"reaction": _react, "check": _check, "issue": _issue}
        try:
            remote_id = await send.get(row.kind, _comment)(self.services.api, where, row, wanted)
        except Gone:
            if row.remote_id is not None and row.kind != "reaction":
                # somebody deleted it: it is written anew, once; if that is gone too, the place itself is gone
                return Change(state="pending", due_at=self.services.clock(), values={"remote_id": None, "sent": ""})
            return Change(state="dropped")
        except Denied:
            return Change(state="dropped")
        # what was wanted may have changed meanwhile: then the row was set to pending again, and stays due
        return Change(state="sent", due_at=self.services.clock(), values={"remote_id": remote_id, "sent": digest})


async def _react(github: GitHub, where: Where, row: Message, wanted: Mapping[str, Any]) -> int | None:
    await github.react(where, wanted["comment_id"], wanted["content"])
    return None


async def _comment(github: GitHub, where: Where, row: Message, wanted: Mapping[str, Any]) -> int | None:
    known = row.remote_id
    if known is None and row.attempts > 1:
        since = datetime.fromtimestamp(row.created_at - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        known = await github.find_comment(where, row.number, marker(row.id), since)
    if known is None:
        return await github.create_comment(where, row.number, wanted["body"])
    await github.update_comment(where, known, wanted["body"])
    return known


async def _check(github: GitHub, where: Where, row: Message, wanted: Mapping[str, Any]) -> int | None:
    known = row.remote_id
    if known is None and row.attempts > 1:
        known = await github.find_check(where, wanted["head_sha"], wanted["name"], wanted["external_id"])
    annotations = wanted.get("output", {}).get("annotations", [])
    batches = [annotations[at : at + 50] for at in range(0, len(annotations), 50)] or [[]]
    for batch in batches:
        part = dict(wanted)
        if "output" in wanted:
            part["output"] = {**wanted["output"], "annotations": batch}
        if known is None:
            known = await github.create_check(where, part)
        else:
            await github.update_check(where, known, part)
    return known


async def _issue(github: GitHub, where: Where, row: Message, wanted: Mapping[str, Any]) -> int | None:
    known = row.remote_id
    if known is None and row.attempts > 1:
        known = await github.find_issue(where, marker(row.id), ",".join(wanted["labels"]))
    if known is None:
        known = await github.create_issue(where, wanted)
        if wanted["state"] == "open":
            return known
    # what a person has closed stays closed, however often it is edited
    changed = {key: value for key, value in wanted.items() if key != "state" or value == "closed"}
    await github.update_issue(where, known, changed)
    return known


def marker(key: str) -> str:
    """The hidden line by which we find our own comment again. It is looked for only among comments of our own App."""
    return f"<!-- benchbot:{key} -->"
