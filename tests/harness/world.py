"""A world for stories: the local GitHub, the bot with its real web and workers, a cloud in memory, a clock of its own.

A story drives everything by hand, and reads every answer of the bot. The same story is told again with the process
killed after each outside call (`tests.harness.story`).
"""

import asyncio
import random
import re
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from aiohttp import ClientSession, web
from sqlalchemy import select

from bot.app import priced, workers
from bot.artifacts.local import LocalStore
from bot.github.auth import AppKey
from bot.github.client import GitHub
from bot.sandbox.hooks import Happening
from bot.sandbox.shapes import API
from bot.sandbox.state import Comment, Pull, Repository
from bot.sandbox.world import Sandbox
from bot.services import Services
from bot.settings import Settings
from bot.store.codec import load
from bot.store.database import Database
from bot.store.memory import Branch, Schedule
from bot.store.rows import CLAIM_S
from bot.store.tables import Controlled, Delivery, Incident, Lease, Machine, Message, Object, Request
from bot.web import application
from bot.workers import reaper
from bot.workers.catchup import redeliver_missed
from runners.backends.base import Backend, BackendSettings
from runners.spec import MachineOrder
from tests.harness.agent import Gone, Script, ScriptedAgent, Training
from tests.harness.cloud import Cloud, FakeBackend
from tests.harness.github_contract import middleware, rest_contract, webhook_contract
from tests.harness.land import FULL_NAME, Land
from tests.harness.storage import CloudStorage

START = 1_790_000_000.0
CONTROLLED: tuple[type[Controlled], ...] = (Delivery, Request, Lease, Machine, Object, Message, Branch, Schedule)
BOT = "benchbot[bot]"


class Killed(BaseException):
    """The process ends here: nothing after the outside call happens."""


@dataclass(slots=True)
class Clock:
    """Seconds since the epoch, moved by hand."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Killer:
    """Counts outside calls; kills once, after the effect of call number `after` (from 1)."""

    after: int | None = None
    calls: list[str] = field(default_factory=list)

    def guard(self, edge: Any, name: str) -> Any:
        """The edge with every coroutine method counted."""
        return _Guarded(edge, name, self)

    def happened(self, call: str) -> None:
        self.calls.append(call)
        if self.after is not None and len(self.calls) == self.after:
            raise Killed(call)


class _Guarded:
    def __init__(self, edge: Any, name: str, killer: Killer) -> None:
        self._edge, self._name, self._killer = edge, name, killer

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._edge, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def counted(*args: Any, **kwargs: Any) -> Any:
            answer = await method(*args, **kwargs)
            self._killer.happened(f"{self._name}.{name}")
            return answer

        return counted


class StandIn(Protocol):
    """A cloud on loopback with a backend of ours before it."""

    def backend(self, folder: Path) -> Backend:
        """A fresh backend, as a new process would build it; `folder` is for its key."""

    def orders(self, server_url: str) -> Mapping[str, MachineOrder]:
        """What each running machine knows of its lease, from what the cloud gave it."""


class World:
    """One repository with one open pull request, people with different rights, and the bot. See `open_world`.

    maya maintains, ada wrote the pull request and may write, tom may triage, sam is a stranger.
    """

    services: Services
    session: ClientSession
    sandbox: Sandbox
    repository: Repository
    pull: Pull
    land: Land

    def __init__(self, folder: Path, seed: int, kill_after: int | None = None) -> None:
        self.folder = folder
        self.clock = Clock()
        self.random = random.Random(seed)
        # ids that are the same each time: rows that are due at once are claimed in their order
        self._ids = random.Random(seed + 1)
        self.killer = Killer(kill_after)
        self.cloud = Cloud(self.clock)
        self.script: Script = lambda commit, seed: Training(
            values={"validation/accuracy": 90.0 + seed / 100, "train/seconds_per_step": 0.1 + seed / 10_000}
        )
        self.hold_agents = False
        self.restarts = 0
        self.told: list[str] = []
        # held for as long as the world lives: between two processes of the bot nobody else may get it
        self._port_held = _free_port()
        self.port: int = self._port_held.getsockname()[1]
        self.violations: list[str] = []
        self._read: set[int] = set()
        self._handmade: set[str] = set()
        # a story may change what one run does, or the operator's settings
        self.by_run: Callable[[str, Training], Training] = lambda run_id, training: training
        self.settings: Settings | None = None
        # what does the work of a machine that runs
        self.drive: Callable[[MachineOrder], Awaitable[None]] = self._scripted
        self.clouds: dict[str, StandIn] = {}
        self.storage: CloudStorage | None = None
        # what else lives here and acts by itself; each says whether something happened
        self.beside: list[Callable[[], Awaitable[bool]]] = []
        # what such things hold open until the story was checked
        self.closing: list[Callable[[], Awaitable[None]]] = []
        self._runner: web.AppRunner | None = None
        self._database: Database | None = None

    # ---- what people do ---------------------------------------------------------------------------------------------

    async def comment(self, who: str, body: str, pull: Pull | None = None) -> Comment:
        """Somebody comments; nothing has happened yet."""
        self.told.append(f"{who}: {body}")
        self.clock.now += 1
        number = (pull or self.pull).number
        return self.sandbox.acts.comment(self.repository, number, self.sandbox.add_account(who), body)

    async def says(self, who: str, body: str, pull: Pull | None = None) -> Comment:
        """Somebody comments, and everything happens that follows from it."""
        said = await self.comment(who, body, pull)
        await self.settle()
        return said

    async def edits(self, who: str, comment: Comment, body: str) -> None:
        """Somebody edits a comment, and everything happens that follows."""
        self.told.append(f"{who} edits: {body}")
        self.clock.now += 1
        self.sandbox.acts.edit(self.repository, self.pull, comment, self.sandbox.add_account(who), body)
        await self.settle()

    async def pushes(self, who: str, files: dict[str, bytes] | None = None) -> str:
        """Somebody pushes a commit to the pull request; nothing else has happened yet. The new head."""
        self.clock.now += 1
        sha = await self.sandbox.push(
            self.repository, who, self.pull.head_ref, files or {"train.py": f"# push {len(self.told)}\n".encode()}
        )
        self.told.append(f"{who} pushes {sha[:10]}")
        return sha

    async def hook(self, event: str, who: str, **fields: Any) -> None:
        """A webhook that no method of the sandbox makes, not judged, and everything that follows."""
        self.clock.now += 1
        sender = self.sandbox.add_account(who)
        self.sandbox.hooks.tell(Happening(event=event, fields=fields, repository=self.repository, sender=sender))
        self._handmade.add(self.sandbox.hooks.waiting[-1].guid)
        await self.settle()

    async def reviews(self, who: str, event: str, body: str = "") -> int:
        """Somebody reviews the head (APPROVE, COMMENT ...), and everything happens that follows. The review's id."""
        self.told.append(f"{who} reviews: {event} {body}".rstrip())
        self.clock.now += 1
        account = self.sandbox.add_account(who)
        review = self.sandbox.acts.review(self.repository, self.pull.number, account, event, body)
        await self.settle()
        return review.id

    # ---- what people see --------------------------------------------------------------------------------------------

    def read(self, pull: Pull | None = None) -> list[str]:
        """Comments of the bot that nobody has read yet, oldest first, without their hidden marks."""
        new = [c for c in (pull or self.pull).comments if c.author.login == BOT and c.id not in self._read]
        self._read |= {comment.id for comment in new}
        bodies = ["\n".join(line for line in c.body.splitlines() if not line.startswith("<!--")) for c in new]
        self.told += [f"benchbot: {body.strip()}" for body in bodies]
        # a zero-width space keeps GitHub from making links; nobody sees it
        return [body.strip().replace("\u200b", "") for body in bodies]

    def signs(self, comment: Comment) -> set[str]:
        """Reactions of the bot on a comment."""
        return {reaction.content for reaction in comment.reactions if reaction.author.login == BOT}

    def checks(self, pull: Pull | None = None) -> dict[str, tuple[str, str | None]]:
        """Status and conclusion of each check run of the head, by name."""
        head = (pull or self.pull).head_sha
        return {
            check.fields["name"]: (check.fields["status"], check.fields.get("conclusion"))
            for check in self.repository.checks
            if check.head_sha == head
        }

    async def requests(self) -> list[Request]:
        """All requests, oldest first."""
        async with self.services.database.read() as tx:
            return list(await tx.scalars(select(Request).order_by(Request.created_at, Request.id)))

    # ---- driving ----------------------------------------------------------------------------------------------------

    async def settle(self, *, until: float | None = None) -> None:
        """Let everything happen that will happen by itself, at most `until` seconds from now.

        Without `until` it is half a minute while agents are held, else long enough for every deadline.
        """
        end = self.clock.now + (until or (30.0 if self.hold_agents else 8 * 3600.0))
        for _ in range(5_000):
            if await self._progress():
                continue
            due = await self._next_due()
            if due is None or due > end:
                return
            self.clock.now = max(self.clock.now, due) + 0.001
        raise AssertionError("the world does not come to rest")

    async def work(self) -> None:
        """Let everything happen that is due now; no time passes."""
        for _ in range(5_000):
            if not await self._progress():
                return
        raise AssertionError("the world does not come to rest")

    async def agent(self) -> ScriptedAgent:
        """The agent of the one machine that has none yet, to be driven by hand (with `hold_agents`)."""
        (name,) = [name for name in self.cloud.machines if name not in self.cloud.driven]
        self.cloud.driven.add(name)
        return ScriptedAgent(self.session, self.cloud.machines[name], self.script, self.by_run, self._tick)

    async def _progress(self) -> bool:
        """One round: webhooks arrive, workers tick in any order, agents work. False when nothing happened."""
        moved = await self._deliver()
        moved |= await self._tick()
        for act in self.beside:
            moved = moved or await act()
        return moved or await self._agents()

    async def _tick(self) -> bool:
        """Each worker, in any order, drives one row that is due. False when none was."""
        moved = False
        crew = list(workers(self.services))
        self.random.shuffle(crew)
        try:
            for worker in crew:
                moved |= await worker.tick()
        except Killed:
            await self._restart()
            return True
        return moved

    async def _deliver(self) -> bool:
        """Send one of the webhooks that wait, whichever."""
        if not self.sandbox.hooks.waiting:
            return False
        delivery = self.random.choice(self.sandbox.hooks.waiting)
        await self.sandbox.hooks.send(self.session, delivery)
        return True

    async def _restart(self) -> None:
        """A new process on the same rows; the claims of the dead one run out first."""
        self.killer.after = None
        self.restarts += 1
        self.clock.now += CLAIM_S + 1
        await self.close_bot()
        await self.open_bot()
        await self.catch_up()

    async def catch_up(self) -> int:
        """Ask GitHub for deliveries that were missed, as the bot does when it starts."""
        try:
            return await redeliver_missed(self.services)
        except Killed:
            await self._restart()
            return 0

    async def _agents(self) -> bool:
        moved = False
        elsewhere = [cloud.orders(self.services.settings.agent_url) for cloud in self.clouds.values()]
        for name, order in [pair for orders in (self.cloud.machines, *elsewhere) for pair in orders.items()]:
            if self.hold_agents or name in self.cloud.driven:
                continue
            self.cloud.driven.add(name)
            moved = True
            with suppress(Gone):  # the lease ended under the agent
                await self.drive(order)
            # no lease takes no time at all, and people are told how long one took
            self.clock.now += 20.0
        return moved

    async def _scripted(self, order: MachineOrder) -> None:
        await ScriptedAgent(self.session, order, self.script, self.by_run, self._tick).run()

    async def _next_due(self) -> float | None:
        async with self.services.database.read() as tx:
            dues = []
            for table in CONTROLLED:
                found = await tx.scalars(select(table.due_at).where(table.due_at.is_not(None)))
                dues += [due for due in found if due is not None]
        return min(dues, default=None)

    # ---- opening and closing ----------------------------------------------------------------------------------------

    async def open_bot(self) -> None:
        """A process of the bot on the world's folder: web on its port, workers driven by hand."""
        settings = self.settings or self._settings()
        self._database = Database(settings.database_url)
        key = AppKey(settings.app_id, settings.private_key, settings.github_api_url)
        FakeBackend.cloud = self.cloud
        backend = FakeBackend(
            BackendSettings(
                deployment=settings.deployment, folder=self.folder / "machines", clock=self.clock, options={}
            )
        )
        bucket = self.storage.bucket(self.folder, self.session) if self.storage else None
        clouds = {name: cloud.backend(self.folder) for name, cloud in self.clouds.items()}
        self.services = Services(
            settings=await priced(settings, {"local": backend, **clouds}),
            database=self._database,
            github=self.killer.guard(GitHub(self.session, key), "github"),
            backends={
                "local": self.killer.guard(backend, "backend"),
                **{name: self.killer.guard(cloud, name) for name, cloud in clouds.items()},
            },
            artifacts=LocalStore(settings.data_folder / "artifacts"),
            bucket=self.killer.guard(bucket, "bucket") if bucket else None,
            clock=self.clock,
            new_id=self._new_id,
        )
        # the process is killed in its workers' calls; what the web has begun, a lost answer shows as well
        served = replace(self.services, bucket=bucket)
        self._runner = web.AppRunner(application.build(served), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, settings.host, settings.port, reuse_address=True).start()

    def _new_id(self) -> str:
        return "".join(self._ids.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(26))

    async def close_bot(self) -> None:
        """The process ends; rows and files stay."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._database is not None:
            await self._database.close()

    def release(self) -> None:
        """Give the port back, for good."""
        self._port_held.close()

    def _settings(self) -> Settings:
        address = f"http://127.0.0.1:{self.port}"
        return Settings(
            data_folder=self.folder / "bot",
            database_url=f"sqlite+aiosqlite:///{self.folder}/bot/benchbot.sqlite",
            base_url=address,
            agent_url=address,
            port=self.port,
            app_id=self.land.app.id,
            private_key=self.land.app.private_key,
            webhook_secret=self.land.app.webhook_secret,
            github_api_url=self.sandbox.api_url,
            github_web_url=self.sandbox.url,
        )

    async def check_the_end(self) -> None:
        """What must hold when a story ends, whatever it was about."""
        self.killer.after = None
        assert not self.cloud.machines, f"machines are left: {sorted(self.cloud.machines)}"
        assert not await reaper.reap(self.services, {}), "the reaper found something"
        async with self.services.database.read() as tx:
            for table in CONTROLLED:
                claimed = (await tx.scalars(select(table.id).where(table.claim.is_not(None)))).all()
                assert not claimed, f"claimed {table.__tablename__}: {claimed}"
            unsent = (await tx.scalars(select(Message.id).where(Message.state == "pending"))).all()
            new = (await tx.scalars(select(Delivery.id).where(Delivery.state == "new"))).all()
            bugs = (await tx.scalars(select(Incident.traceback))).all()
        assert not unsent, f"messages are not sent: {unsent}"
        assert not new, f"deliveries are not read: {new}"
        assert not bugs, "\n".join(bugs)
        assert not self.violations, "\n".join(self.violations)
        hooks = webhook_contract()
        for delivery in self.sandbox.hooks.sent:
            if hooks is not None and delivery.guid not in self._handmade:
                assert hooks.check(delivery.event, delivery.payload) == []
        for pull in self.repository.pulls.values():
            unread = [c.body for c in pull.comments if c.author.login == BOT and c.id not in self._read]
            assert not unread, f"nobody read: {unread}"

    async def final_words(self) -> list[str]:
        """What GitHub shows at the end, without what depends on ids, addresses and the time it took.

        Short notices are left out: whether there is one depends on the time; that there is at most one is checked.
        """
        bodies = [c.body for pull in self.repository.pulls.values() for c in pull.comments if c.author.login == BOT]
        notices = [_mark(body) for body in bodies if ":notice" in _mark(body)]
        assert len(notices) == len(set(notices)), "the same notice was written twice"
        words = [_timeless(body) for body in bodies if ":notice" not in _mark(body)]
        words += [f"{name}: {state}" for name, state in sorted(self.checks().items())]
        return sorted(words)


def _mark(body: str) -> str:
    found = re.search(r"<!-- (.*?) -->", body)
    return found[1] if found else ""


def _timeless(body: str) -> str:
    body = re.sub(r"http://127\.0\.0\.1:\d+", "http://bot", body)
    body = re.sub(r"\b[a-z2-7]{26}(-\d)?\b", "ID", body)
    body = re.sub(r"<!-- benchbot:.*? -->\n?", "", body)
    body = re.sub(r"\$\d+\.\d\d", "MONEY", body)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|\b\d+(?:\.\d+)? (?:s|min|h)(?: \d+ (?:s|min))*\b", "TIME", body)


def _free_port() -> socket.socket:
    """A port of loopback that the system gives to nobody while this is open; a server that reuses addresses may."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


@asynccontextmanager
async def open_world(folder: Path, seed: int = 0, kill_after: int | None = None) -> AsyncIterator[World]:
    """A world at rest; `check_the_end` is for the story to call when it has ended well."""
    world = World(folder, seed, kill_after)
    async with ClientSession() as session:
        world.session = session
        await asyncio.to_thread(folder.mkdir, exist_ok=True)
        world.sandbox = Sandbox(folder / "github", world.clock)
        world.sandbox.hooks.held = True
        # where GitHub's own descriptions are at hand, every call and webhook of every story is judged by them
        judge = rest_contract()
        await world.sandbox.start(middlewares=[middleware(judge, API, world.violations)] if judge else [])
        try:
            world.land = await Land.settle(world.sandbox, folder, f"http://127.0.0.1:{world.port}/webhook")
            world.repository, world.pull = world.land.repository, world.land.pull
            (folder / "bot").mkdir(mode=0o700)
            shutil.copyfile(Land.database(), folder / "bot" / "benchbot.sqlite")
            await world.open_bot()
            try:
                await world.settle()
                yield world
            finally:
                await world.close_bot()
                for close in world.closing:
                    await close()
        finally:
            await world.sandbox.stop()
            world.release()


__all__ = ["BOT", "FULL_NAME", "Training", "World", "load", "open_world"]
