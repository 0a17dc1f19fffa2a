"""Webhooks: composed for every App that may hear of it, signed, sent in order, remembered, sent again on request."""

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from bot.sandbox.shapes import Json, Shapes
from bot.sandbox.state import Account, App, Installation, Repository, State, iso

PATIENCE_S = 10.0


@dataclass(slots=True, kw_only=True, eq=False)
class Delivery:
    """One try to tell an App what happened. `status_code` is 0 when nobody answered, None before it was tried."""

    id: int
    guid: str
    event: str
    body: bytes
    app: App
    installation_id: int
    repository_id: int
    redelivery: bool = False
    delivered_at: float = 0.0
    duration: float = 0.0
    status_code: int | None = None
    answer: str = ""

    @property
    def payload(self) -> Json:
        """The body as JSON."""
        payload: Json = json.loads(self.body)
        return payload


@dataclass(slots=True, kw_only=True)
class Happening:
    """What is told: the event's name, its own fields, where it happened and who did it."""

    event: str
    fields: Mapping[str, Any]
    repository: Repository
    sender: Account
    only: App | None = None


@dataclass(slots=True)
class Hooks:
    """`waiting` holds what has not been sent. With `held` nothing is sent by itself: a test sends in its own order."""

    state: State
    shapes: Shapes
    held: bool = False
    waiting: list[Delivery] = field(default_factory=list)
    sent: list[Delivery] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, happening: Happening) -> None:
        """Queue the event for every App that is installed there and listens; `only` narrows it to its own App."""
        for installation in self.state.installations_of(happening.repository):
            app = installation.app
            if happening.event not in app.events or happening.only not in (None, app) or not app.webhook_url:
                continue
            self._queue(self._compose(happening, installation))

    def _compose(self, happening: Happening, installation: Installation) -> Delivery:
        payload = {
            **happening.fields,
            "repository": self.shapes.repository(happening.repository),
            "sender": self.shapes.user(happening.sender),
            "installation": {"id": installation.id, "node_id": f"MDIz{installation.id}"},
        }
        return Delivery(
            id=self.state.new_id(),
            guid=str(uuid.uuid4()),
            event=happening.event,
            body=json.dumps(payload).encode(),
            app=installation.app,
            installation_id=installation.id,
            repository_id=happening.repository.id,
        )

    def again(self, delivery: Delivery) -> None:
        """The same delivery once more, under the same guid."""
        self._queue(
            Delivery(
                id=self.state.new_id(),
                guid=delivery.guid,
                event=delivery.event,
                body=delivery.body,
                app=delivery.app,
                installation_id=delivery.installation_id,
                repository_id=delivery.repository_id,
                redelivery=True,
            )
        )

    def _queue(self, delivery: Delivery) -> None:
        self.waiting.append(delivery)
        self._idle.clear()
        self._news.set()

    async def run(self) -> None:
        """Send what waits, one after the other, until cancelled."""
        async with ClientSession(timeout=ClientTimeout(total=PATIENCE_S)) as session:
            while True:
                while self.waiting and not self.held:
                    await self.send(session, self.waiting[0])
                if not self.waiting:
                    self._idle.set()
                self._news.clear()
                await self._news.wait()

    async def delivered(self) -> None:
        """Returns when nothing waits."""
        if self.waiting:
            await self._idle.wait()

    async def send(self, session: ClientSession, delivery: Delivery) -> None:
        """One try, whose outcome is remembered; GitHub does not try again by itself."""
        if delivery in self.waiting:
            self.waiting.remove(delivery)
        began = time.monotonic()
        delivery.delivered_at = self.state.clock()
        try:
            async with session.post(delivery.app.webhook_url, data=delivery.body, headers=signed(delivery)) as answer:
                delivery.status_code, delivery.answer = answer.status, (await answer.text())[:1000]
        except (ClientError, OSError, TimeoutError) as error:
            delivery.status_code, delivery.answer = 0, type(error).__name__
        delivery.duration = time.monotonic() - began
        self.sent.insert(0, delivery)

    def shape(self, delivery: Delivery) -> Json:
        """hook-delivery-item"""
        code = delivery.status_code or 0
        return {
            "id": delivery.id,
            "guid": delivery.guid,
            "delivered_at": iso(delivery.delivered_at),
            "redelivery": delivery.redelivery,
            "duration": round(delivery.duration, 3),
            "status": "OK"
            if 200 <= code < 300
            else "failed to connect to host"
            if code == 0
            else "Invalid HTTP Response",
            "status_code": code,
            "event": delivery.event,
            "action": delivery.payload.get("action"),
            "installation_id": delivery.installation_id,
            "repository_id": delivery.repository_id,
            "throttled_at": None,
        }


def signed(delivery: Delivery) -> dict[str, str]:
    """The headers of a delivery, signature included."""
    secret = delivery.app.webhook_secret.encode()
    return {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/local",
        "X-GitHub-Delivery": delivery.guid,
        "X-GitHub-Event": delivery.event,
        "X-GitHub-Hook-ID": str(delivery.app.id),
        "X-GitHub-Hook-Installation-Target-ID": str(delivery.app.id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret, delivery.body, hashlib.sha256).hexdigest(),
    }
