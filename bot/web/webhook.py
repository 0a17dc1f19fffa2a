"""Where GitHub's webhooks arrive: signature over the raw bytes, stored once, answered 202. The work is done later.

Deliveries that arrive together share one transaction; each is answered only after that transaction is committed.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import web

from bot.github.events import BadDelivery, Signed, happened, open_delivery
from bot.services import Services
from bot.store.database import insert_into
from bot.store.tables import Delivery
from bot.web.keys import SERVICES, WAKE

# GitHub's own limit
MAX_BODY = 25 * 1024 * 1024
MAX_BATCH = 256
EVENTS = frozenset(
    (
        "issue_comment",
        "pull_request",
        "pull_request_review",
        "check_run",
        "check_suite",
        "push",
        "release",
        "repository",
        "installation",
        "installation_repositories",
    )
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    signed: Signed
    stored: asyncio.Future[None]


class Mailbox:
    """Stores deliveries in the order of arrival, as many at a time as have come meanwhile."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(maxsize=10_000)
        # unique by delivery and by what happened: whoever reports it a second time reports nothing new
        self._insert = insert_into(services.database, Delivery).on_conflict_do_nothing()

    async def store(self, signed: Signed) -> None:
        """Returns when the delivery is committed. Raises what the database raised."""
        waiting = _Waiting(signed, asyncio.get_running_loop().create_future())
        await self._queue.put(waiting)
        await waiting.stored

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            batch = [await self._queue.get()]
            # what has already come over the wire joins this transaction
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            while len(batch) < MAX_BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            try:
                await self._write([waiting.signed for waiting in batch])
            except Exception as error:
                for waiting in batch:
                    if not waiting.stored.done():
                        waiting.stored.set_exception(error)
            else:
                for waiting in batch:
                    if not waiting.stored.done():
                        waiting.stored.set_result(None)

    async def _write(self, batch: list[Signed]) -> None:
        now = self._services.clock()
        rows = [
            {
                "id": signed.guid,
                "state": "new" if signed.event in EVENTS else "done",
                "want": "",
                "due_at": now,
                "poked": False,
                "attempts": 0,
                "error": "",
                "happened": happened(signed),
                "event": signed.event,
                "body": signed.text if signed.event in EVENTS else "",
                "received_at": now,
            }
            for signed in batch
        ]
        await self._services.database.append(self._insert, rows)


MAILBOX = web.AppKey("mailbox", Mailbox)


def add_routes(app: web.Application) -> None:
    """The one address that GitHub is told."""
    app.router.add_post("/webhook", webhook)
    app.cleanup_ctx.append(_mailbox)


async def _mailbox(app: web.Application) -> AsyncIterator[None]:
    app[MAILBOX] = Mailbox(app[SERVICES])
    writer = asyncio.create_task(app[MAILBOX].run())
    yield
    writer.cancel()
    await asyncio.gather(writer, return_exceptions=True)


async def webhook(request: web.Request) -> web.Response:
    """202 when stored (or known already), 4xx with one sentence otherwise."""
    raw = await request.read()
    try:
        signed = open_delivery(request.headers, raw, request.app[SERVICES].settings.webhook_secret)
    except BadDelivery as bad:
        return web.json_response({"error": str(bad)}, status=bad.status)
    await request.app[MAILBOX].store(signed)
    request.app[WAKE]()
    return web.json_response({"stored": signed.guid}, status=202)
