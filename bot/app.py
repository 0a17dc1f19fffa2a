"""The composition root: the only module that sees all parts. Builds services, the web application and the workers."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import ClientSession, ClientTimeout, web

from bot.artifacts.base import Bucket, BucketRefused
from bot.artifacts.gcs import GcsBucket
from bot.artifacts.local import LocalStore
from bot.artifacts.signing import Account
from bot.core.nouns import Hardware
from bot.github.auth import AppKey
from bot.github.caller import Caller
from bot.github.client import GitHub
from bot.services import Services
from bot.settings import Settings
from bot.store.database import Database
from bot.store.hosts import StoredPool
from bot.store.migrate import migrate
from bot.web import application
from bot.workers import keeping, reaper
from bot.workers.alarms import Alarms
from bot.workers.base import Worker
from bot.workers.branches import Branches
from bot.workers.catchup import redeliver_missed
from bot.workers.inbox import Inbox
from bot.workers.leases import Leases
from bot.workers.loop import Loop
from bot.workers.machines import Machines
from bot.workers.objects import Objects
from bot.workers.outbox import Outbox
from bot.workers.requests import Requests
from bot.workers.schedules import Schedules
from runners.backends import find_backends
from runners.backends.base import Backend, BackendError, BackendSettings

log = logging.getLogger("benchbot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """A bot that is open: services, and the loop that its workers and its web share."""

    services: Services
    loop: Loop

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """The web application on the configured host and port."""
        settings = self.services.settings
        runner = web.AppRunner(application.build(self.services), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
            yield
        finally:
            await runner.cleanup()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """All workers, the reaper, and once the deliveries that were missed."""
        tasks = [
            asyncio.create_task(self.loop.run(workers(self.services))),
            asyncio.create_task(self._sweep()),
            asyncio.create_task(self._again(keeping.tidy, keeping.EVERY_S)),
            asyncio.create_task(self._again(keeping.retain, keeping.RETAIN_EVERY_S)),
        ]
        if self.services.github is not None:
            tasks.append(asyncio.create_task(self._catch_up()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _sweep(self) -> None:
        first_seen: dict[str, float] = {}
        while True:
            try:
                await reaper.reap(self.services, first_seen)
            except Exception:
                log.exception("the reaper failed and tries again")
            await asyncio.sleep(reaper.EVERY_S)

    async def _again(self, what: Callable[[Services], Awaitable[object]], every_s: float) -> None:
        while True:
            try:
                await what(self.services)
            except Exception:
                log.exception("%s failed and tries again", what.__name__)
            await asyncio.sleep(every_s)

    async def _catch_up(self) -> None:
        try:
            asked = await redeliver_missed(self.services)
        except Exception:
            log.exception("missed deliveries could not be asked for; GitHub's page of the App can redeliver them")
        else:
            log.info("%d missed deliveries asked for again", asked)


def workers(services: Services) -> tuple[Worker[Any], ...]:
    """One of each; those that need GitHub only where there is one."""
    with_github = (Inbox(services), Outbox(services), Branches(services), Schedules(services), Alarms(services))
    always = (Requests(services), Leases(services), Machines(services), Objects(services))
    return always + (with_github if services.github is not None else ())


def build_backends(settings: Settings, database: Database, github: GitHub | None = None) -> Mapping[str, Backend]:
    """Every backend that the configured hardware names or that has a table: machines may outlive their hardware."""
    known = find_backends()
    wanted = {hardware.backend for hardware in settings.hardware.values()} | set(settings.backends)
    return {
        name: known[name](
            BackendSettings(
                deployment=settings.deployment,
                folder=settings.machines_folder / name,
                clock=time.time,
                options=settings.backend_options(name),
                github=Caller(github) if github else None,
                pool=StoredPool(database, time.time),
            )
        )
        for name in sorted(wanted & set(known))
    }


def build_bucket(settings: Settings, session: ClientSession) -> Bucket | None:
    """The operator's bucket. Ends the process when its account cannot be used: the operator has to mend that."""
    if not settings.bucket:
        return None
    try:
        account = Account(settings.bucket_credentials_file)
    except BucketRefused as error:
        raise SystemExit(f"benchbot: {error}") from None
    return GcsBucket(settings.bucket, account, session, time.time, settings.bucket_endpoint)


async def priced(settings: Settings, backends: Mapping[str, Backend]) -> Settings:
    """The settings with what hardware costs at most by its backend's list, where the operator does not say it."""
    return replace(
        settings, hardware={name: await _priced(entry, backends) for name, entry in settings.hardware.items()}
    )


async def _priced(entry: Hardware, backends: Mapping[str, Backend]) -> Hardware:
    backend = backends.get(entry.backend)
    if entry.price_usd_per_hour is not None or backend is None:
        return entry
    if not backend.billed:
        return replace(entry, listed_usd_per_hour=0.0)
    try:
        listed = [offer.price_usd_per_hour for offer in await backend.offers(entry.options)]
    except (BackendError, OSError) as error:
        # whoever asks for this hardware is told what is wrong
        log.warning("the price of %s is not known: %s", entry.name, error)
        listed = []
    known = [price for price in listed if price is not None]
    return replace(entry, listed_usd_per_hour=max(known) if known and len(known) == len(listed) else None)


@asynccontextmanager
async def open_bot(settings: Settings) -> AsyncIterator[Bot]:
    """Folders, database (migrated), GitHub and backends, closed again at the end."""
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with AsyncExitStack() as stack:
        database = Database(settings.database_url)
        stack.push_async_callback(database.close)
        await migrate(database)
        github = None
        session = await stack.enter_async_context(ClientSession(timeout=ClientTimeout(total=60)))
        if settings.app_id:
            github = GitHub(session, AppKey(settings.app_id, settings.private_key, settings.github_api_url))
        loop = Loop()
        backends = build_backends(settings, database, github)
        services = Services(
            settings=await priced(settings, backends),
            database=database,
            github=github,
            backends=backends,
            artifacts=LocalStore(settings.data_folder / "artifacts"),
            bucket=build_bucket(settings, session),
            clock=time.time,
            wake=loop.wake,
        )
        yield Bot(services=services, loop=loop)
