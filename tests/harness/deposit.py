"""A bot's web application with one lease that lives, over any store of artifacts: the agent's own code ships to it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web
from sqlalchemy import insert, select, update

from bot.app import workers
from bot.artifacts.base import Bucket
from bot.artifacts.local import LocalStore
from bot.services import Services
from bot.settings import Settings
from bot.store.database import Database
from bot.store.leases import fingerprint
from bot.store.migrate import migrate
from bot.store.tables import Artifact, Lease, Object, Request, Run
from bot.web import application
from runners.agent.link import Link
from runners.agent.shipping import Shipment
from tests.harness.storage import CloudStorage

CREDENTIAL = "credential-of-the-lease"
START = 1_790_000_000.0


class Deposit:
    """One lease with the runs r1 and r2. `files` are what the machine has of r1; `storage` is None without a bucket."""

    def __init__(self, folder: Path, storage: CloudStorage | None) -> None:
        self.folder, self.storage = folder, storage
        self.now = START
        self.outputs, self.log = folder / "outputs", folder / "machine" / "log.txt"
        for place in (self.outputs / "logs", self.outputs / "checkpoints", self.log.parent):
            place.mkdir(parents=True, exist_ok=True)
        self.gone = threading.Event()
        self.url = ""
        self.services: Services
        self.session: ClientSession

    def write(self, path: str, data: bytes) -> None:
        """The run on the machine writes a file."""
        file = self.log if path == "log.txt" else self.outputs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + "~")
        fresh.write_bytes(data)
        fresh.rename(file)

    def shipment(self) -> Shipment:
        """The agent's own code, as a new agent would begin."""
        link = Link(self.url, self.gone)
        link.credential = CREDENTIAL
        return Shipment(link, "r1", self.log, self.outputs, None)

    async def ship(self, *, at_its_end: bool = True, last: bool = False, patience_s: float = 5.0) -> bool:
        """Ship everything there is."""
        shipment = self.shipment()

        def complete() -> bool:
            try:
                return shipment.complete(patience_s, at_its_end=at_its_end, last=last)
            finally:
                shipment._link.close()

        return await asyncio.to_thread(complete)

    async def grow(self, path: str) -> None:
        """Send what there is of a log, as an agent does while its run goes on."""
        shipment = self.shipment()

        def send() -> None:
            try:
                shipment._send(path, dict(shipment._files(("logs",), set()))[path], 1.0)
            finally:
                shipment._link.close()

        await asyncio.to_thread(send)

    async def post(self, path: str, body: Mapping[str, Any], status: int = 200) -> dict[str, Any]:
        """A message of the agent."""
        headers = {"Authorization": f"Bearer {CREDENTIAL}"}
        async with self.session.post(f"{self.url}/agent/v1/{path}", json=body, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            found: dict[str, Any] = await answer.json() if status == 200 else {}
            return found

    async def get(self, path: str, *, follow: bool = True) -> tuple[int, bytes, Mapping[str, str]]:
        """What a visitor gets."""
        async with self.session.get(f"{self.url}{path}", allow_redirects=follow) as answer:
            return answer.status, await answer.read(), answer.headers

    async def download(self, path: str) -> bytes:
        """A file of r1 as a visitor gets it."""
        status, data, headers = await self.get(f"/runs/r1/files/{path}")
        assert status == 200, data
        assert headers["Content-Disposition"].startswith("attachment")
        return data

    async def artifacts(self) -> dict[str, Artifact]:
        """The rows of r1."""
        async with self.services.database.read() as tx:
            found = await tx.scalars(select(Artifact).where(Artifact.run_id == "r1"))
            return {one.path: one for one in found}

    async def objects(self) -> list[Object]:
        """All rows of objects."""
        async with self.services.database.read() as tx:
            return list(await tx.scalars(select(Object).order_by(Object.created_at, Object.id)))

    async def end(self, lease: str = "done", request: str = "done") -> None:
        """The lease is over."""
        async with self.services.database.write() as tx:
            await tx.execute(update(Lease).values(state=lease, finished_at=self.now))
            await tx.execute(update(Run).values(state="done"))
            await tx.execute(update(Request).values(state=request, finished_at=self.now))

    async def work(self, limit_s: float = 86_400.0) -> None:
        """Let the workers of objects do all that comes due."""
        (objects,) = [worker for worker in workers(self.services) if worker.noun == "object"]
        end = self.now + limit_s
        while self.now < end:
            while await objects.tick():
                pass
            async with self.services.database.read() as tx:
                dues = [due for due in await tx.scalars(select(Object.due_at)) if due is not None]
            if not dues or min(dues) > end:
                return
            self.now = max(self.now, min(dues)) + 0.001

    def on_disk(self) -> dict[str, int]:
        """Paths and sizes of everything on the server's disk."""
        root = self.folder / "bot" / "artifacts"
        return {str(file.relative_to(root)): file.stat().st_size for file in root.rglob("*") if file.is_file()}


async def _rows(database: Database, now: float) -> None:
    request = {"id": "q1", "trigger": "t", "kind": "command", "state": "running", "repository_id": 1, "private": False}
    asked = {"full_name": "acme/vision", "number": 1, "requester": "maya", "requester_id": 1, "command": "", "call": ""}
    about = {"trusted": True, "head_sha": "a" * 40, "base_sha": "b" * 40, "created_at": now}
    lease = {"id": "l1", "state": "running", "request_id": "q1", "position": 0, "planned": "{}", "hardware": "local"}
    async with database.write() as tx:
        await tx.execute(insert(Request).values(**request, **asked, **about))
        await tx.execute(insert(Lease).values(**lease, created_at=now, credential_hash=fingerprint(CREDENTIAL)))
        for position, name in enumerate(("r1", "r2")):
            run = {"id": name, "lease_id": "l1", "position": position, "side": "head", "seed": position}
            await tx.execute(insert(Run).values(**run, commit="a" * 40, state="running"))


@asynccontextmanager
async def open_deposit(folder: Path, *, bucket: bool) -> AsyncIterator[Deposit]:
    """A deposit with or without a bucket; at its end the bucket has seen no wrong call."""
    deposit = Deposit(folder, None)

    def clock() -> float:
        return deposit.now

    async with AsyncExitStack() as stack:
        session = deposit.session = await stack.enter_async_context(ClientSession())
        found: Bucket | None = None
        if bucket:
            storage = deposit.storage = CloudStorage(clock)
            stack.push_async_callback(storage.stop)
            await storage.start()
            found = storage.bucket(folder, session)
        database = Database(f"sqlite+aiosqlite:///{folder}/rows.sqlite")
        stack.push_async_callback(database.close)
        await migrate(database)
        await _rows(database, START)
        settings = Settings(data_folder=folder / "bot", database_url=database.url, base_url="", agent_url="")
        deposit.services = Services(
            settings=settings,
            database=database,
            github=None,
            backends={},
            artifacts=LocalStore(settings.data_folder / "artifacts"),
            bucket=found,
            clock=clock,
        )
        runner = web.AppRunner(application.build(deposit.services), shutdown_timeout=0.1)
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        deposit.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        stack.callback(deposit.gone.set)
        yield deposit
    assert deposit.storage is None or deposit.storage.violations == []
