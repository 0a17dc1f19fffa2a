"""The inbox: stored deliveries become events, and events become rows. Facts are asked from GitHub, never believed
from a payload: it may be old, and it may have been written by somebody else."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from sqlalchemy import Executable, select, update

from bot.core.nouns import ConfigFault
from bot.core.reasons import reason
from bot.core.repo_config import CONFIG_PATH, load
from bot.github.client import Denied, Gone
from bot.github.events import (
    CheckAsked,
    Commented,
    Event,
    PullChanged,
    Pushed,
    Released,
    RepositoryChanged,
    Reviewed,
    read_event,
)
from bot.report.check import config_check
from bot.store.codec import dump
from bot.store.facts import cancel_requests, outdate, remember_head, remember_repository
from bot.store.history import look_again
from bot.store.messages import show
from bot.store.requests import new_request
from bot.store.rows import Change
from bot.store.tables import Delivery, Lease, Repository, Request
from bot.workers.base import Worker
from bot.workers.conversation import Conversation, where_of
from bot.workers.unasked import NothingToRun, call_on, config_at

Handler = Callable[[Delivery, Any], Coroutine[Any, Any, list[Executable]]]


class Inbox(Worker[Delivery]):
    """Handles one delivery after the other; whatever it leads to is written together with `done`."""

    noun = "delivery"
    table = Delivery

    async def step(self, row: Delivery) -> Change:
        """All consequences of one delivery."""
        event = read_event(row.event, msgspec.json.decode(row.body))
        if event is None:
            return Change(state="done")
        handlers: dict[type[Event], Handler] = {
            Commented: self._commented,
            Reviewed: self._reviewed,
            PullChanged: self._pull_changed,
            CheckAsked: self._check_asked,
            RepositoryChanged: self._repository_changed,
            Pushed: self._pushed,
            Released: self._released,
        }
        writes = await handlers[type(event)](row, event)
        return Change(state="done", writes=(self._repository(event), *writes))

    def _repository(self, event: Event) -> Executable:
        return remember_repository(self.services.database, self._facts(event))

    def _facts(self, event: Event) -> dict[str, Any]:
        return {
            "id": event.repository_id,
            "full_name": event.full_name,
            "private": event.private,
            "default_branch": event.default_branch,
            "installation_id": event.installation_id,
        }

    async def _commented(self, row: Delivery, event: Commented) -> list[Executable]:
        if (
            not event.on_pull
            or event.action == "deleted"
            or event.sender.id != event.author.id
            or "Bot"
            in (
                event.sender.kind,
                event.author.kind,
            )
        ):
            # an edit counts only from the author's own hand; bots, and so we ourselves, give no commands
            return []
        return await Conversation(self.services, event, row.id, row.received_at).comment(
            f"comment:{event.comment_id}", event.number, event.body, event.body_before, event.comment_id
        )

    async def _reviewed(self, row: Delivery, event: Reviewed) -> list[Executable]:
        writes: list[Executable] = []
        talk = Conversation(self.services, event, row.id, row.received_at)
        if event.action == "dismissed" or event.state == "dismissed":
            mine = (Request.repository_id == event.repository_id, Request.number == event.number)
            trigger = Request.trigger.like(f"review:{event.review_id}:%")
            return [cancel_requests(dump(reason("dismissed")), *mine, trigger)]
        if "Bot" in (event.sender.kind, event.author.kind) or event.sender.id != event.author.id:
            return []
        if event.action == "submitted" and event.state == "approved":
            writes += await talk.approval(event)
        writes += await talk.comment(f"review:{event.review_id}", event.number, event.body, event.body_before, None)
        return writes

    async def _pull_changed(self, row: Delivery, event: PullChanged) -> list[Executable]:
        mine = (Request.repository_id == event.repository_id, Request.number == event.number)
        if event.action == "closed":
            merged = msgspec.json.decode(row.body)["pull_request"].get("merged") is True
            return [] if merged else [cancel_requests(dump(reason("closed")), *mine)]
        writes: list[Executable] = []
        if event.action in ("opened", "synchronize", "reopened"):
            writes.append(remember_head(event.repository_id, event.number, event.head_sha, row.received_at))
            writes += outdate(event.repository_id, event.number, event.head_sha)
            # an approval that has not begun is void; what a person asked for goes on
            stale = (Request.kind == "approval", Request.head_sha != event.head_sha, Request.id.not_in(_begun()))
            writes.append(cancel_requests(dump(reason("superseded")), *mine, *stale))
            writes += await self._check_config(event)
        return writes

    async def _check_config(self, event: PullChanged) -> list[Executable]:
        where = where_of(event)
        try:
            if CONFIG_PATH not in await self.services.api.changed_files(where, event.number):
                return []
            text = await self.services.api.file(where, CONFIG_PATH, event.head_sha)
        except (Gone, Denied):
            return []  # deleted, or we were removed meanwhile: nobody is left to tell
        faults: tuple[ConfigFault, ...] = ()
        if text is not None:
            loaded = load(text, hardware=self.services.settings.hardware)
            faults = loaded if isinstance(loaded, tuple) else ()
        check = config_check(faults, CONFIG_PATH)
        key = f"config:{event.repository_id}:{event.head_sha}"
        wanted = {
            "name": check.name,
            "head_sha": event.head_sha,
            "external_id": key,
            "status": check.status,
            "conclusion": check.conclusion,
            "output": {
                "title": check.title,
                "summary": check.summary,
                "annotations": [msgspec.to_builtins(annotation) for annotation in check.annotations],
            },
        }
        place: dict[str, Any] = {
            "kind": "check",
            "repository_id": event.repository_id,
            "number": event.number,
            "request_id": None,
        }
        return [show(self.services.database, key, wanted, now=self.services.clock(), **place)]

    async def _check_asked(self, row: Delivery, event: CheckAsked) -> list[Executable]:
        if event.app_id != self.services.settings.app_id:
            return []
        async with self.services.database.read() as tx:
            chosen = select(Request).where(Request.repository_id == event.repository_id)
            if event.external_id:
                chosen = chosen.where(Request.id == event.external_id)
            else:
                chosen = chosen.where(Request.head_sha == event.head_sha)
            requests = (await tx.scalars(chosen.order_by(Request.created_at))).all()
        return await Conversation(self.services, event, row.id, row.received_at).button(event, requests)

    async def _pushed(self, row: Delivery, event: Pushed) -> list[Executable]:
        if event.ref != f"refs/heads/{event.default_branch}":
            return []
        return [look_again(self.services.database, event.repository_id, self.services.clock())]

    async def _released(self, row: Delivery, event: Released) -> list[Executable]:
        """What the configuration of the released commit says; a tag that is moved to another one is another release."""
        if event.action != "published" or event.draft:
            return []
        services, now = self.services, self.services.clock()
        repository = Repository(**self._facts(event))
        try:
            sha = await services.api.commit(where_of(event), f"tags/{event.tag}")
            config = await config_at(services, where_of(event), sha)
            if config.on_release is None:
                return []
            call = await call_on(services, repository, sha, config.on_release.text, f"release {event.tag}")
        except (Gone, Denied, NothingToRun):
            return []
        trigger = f"release:{event.repository_id}:{event.release_id}:{sha}"
        return [new_request(services.database, services.new_id(), trigger, "release", call, now)]

    async def _repository_changed(self, row: Delivery, event: RepositoryChanged) -> list[Executable]:
        renamed = update(Request).where(Request.repository_id == event.repository_id)
        return [renamed.values(full_name=event.full_name, private=event.private)]


def _begun() -> Any:
    return select(Lease.request_id).where(Lease.state != "queued")
