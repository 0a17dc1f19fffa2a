"""Many leases in flight: rows that stand as if everything had happened, their machines, and agents that say so."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from aiohttp import ClientSession
from sqlalchemy import func, insert, select, update

from benchmarks.processes import bot_environment
from bot.artifacts.local import LocalStore
from bot.cli.local import free_port
from bot.core.calls import plan_of
from bot.core.nouns import Call, Command, Hardware, Person, Plan, PullRequest, RepoConfig
from bot.core.repo_config import CONFIG_PATH
from bot.core.repo_config import load as load_config
from bot.services import Services, random_id
from bot.settings import Settings, load_settings
from bot.store.codec import dump
from bot.store.database import Database
from bot.store.leases import fingerprint
from bot.store.migrate import migrate
from bot.store.requests import new_request
from bot.store.tables import Delivery, Incident, Lease, Machine, Message, Request, Run
from bot.workers.requests import Requests
from runners.backends.base import Backend
from runners.protocol import PREFIX
from runners.spec import MachineOrder
from templates import read_text
from tests.harness.gce import ComputeEngine

LEASES = 500
BEAT_S = 10.0
WARM_S, LOOK_S = 15.0, 60.0
# nobody has to wait longer for a worker
PATIENCE_S = 10.0
NAME = "digits-resnet"
CLOUD = {"machine_type": "n1-standard-8", "zones": "us-central1-a"}


def call_for(hardware: Hardware, number: int = 0) -> Call:
    """A command that runs one benchmark there, on a pull request where there is a number."""
    config = load_config(read_text("projects", f"resnet/{CONFIG_PATH}"), None)
    assert isinstance(config, RepoConfig)
    me = Person(id=1, login="maya", permission="maintain")
    pull = PullRequest(
        repository_id=7,
        full_name="acme/digits",
        number=number,
        author=me,
        head_sha="a" * 40,
        base_ref="main",
        from_fork=False,
    )
    return Call(
        command=Command(verb="run", targets=(NAME,), line=1, text=f"/benchmark {NAME}"),
        sender=me,
        pull=pull,
        head_sha=pull.head_sha,
        base_sha="b" * 40,
        baseline="merge-base with main",
        config=replace(config, benchmarks={NAME: replace(config.benchmarks[NAME], hardware=(hardware.name,))}),
        config_sha="b" * 40,
        hardware={hardware.name: hardware},
        resolved=(NAME,),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What flies: its rows, what a process of the bot needs to know, and the agents' credentials."""

    database: Database
    environment: dict[str, str]
    credentials: tuple[str, ...]

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[list[float]]:
        """Every agent's heartbeats, evenly over time; the list grows by the seconds that each answer took."""
        beats: list[float] = []
        url = f"http://127.0.0.1:{self.environment['BENCHBOT_PORT']}{PREFIX}/heartbeat"

        async def beat(session: ClientSession, credential: str, offset_s: float) -> None:
            await asyncio.sleep(offset_s)
            headers = {"Authorization": f"Bearer {credential}"}
            while True:
                begun = time.perf_counter()
                message = {"phase": "run", "run": "", "at": time.time()}
                async with session.post(url, json=message, headers=headers) as answer:
                    answer.raise_for_status()
                beats.append(time.perf_counter() - begun)
                await asyncio.sleep(max(0.0, BEAT_S - beats[-1]))

        async with ClientSession() as session:
            tasks = [
                asyncio.create_task(beat(session, credential, BEAT_S * at / LEASES))
                for at, credential in enumerate(self.credentials)
            ]
            try:
                yield beats
                failed = [task for task in tasks if task.done()]
                if failed:
                    raise RuntimeError(f"{len(failed)} agents gave up") from failed[0].exception()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def check(self) -> None:
        """Everything still flies, and nothing waits for a worker. Raises RuntimeError."""
        async with self.database.read() as tx:
            running = await tx.scalar(select(func.count()).where(Lease.state == "running"))
            up = await tx.scalar(select(func.count()).where(Machine.state == "up"))
            bugs = (await tx.scalars(select(Incident.traceback))).all()
            late = [
                await tx.scalar(select(func.count()).where(table.due_at < time.time() - PATIENCE_S))
                for table in (Delivery, Lease, Machine, Message, Request)
            ]
        if (running, up) != (LEASES, LEASES) or any(late) or bugs:
            told = f"{running} leases are running, {up} machines are up, rows that are late: {late}"
            raise RuntimeError("\n".join((told, *bugs)))


@asynccontextmanager
async def fleet(folder: Path, engine: ComputeEngine) -> AsyncIterator[Fleet]:
    """A fleet on an empty folder."""
    backend = engine.backend(folder)
    toml = _configuration(backend)
    (folder / "benchbot.toml").write_text(toml)
    environment = bot_environment(folder, free_port())
    settings = load_settings(environment, toml)
    assert isinstance(settings, Settings)
    settings.data_folder.mkdir(mode=0o700)
    database = Database(settings.database_url)
    try:
        await migrate(database)
        credentials = await _rows(database, backend, call_for(settings.hardware["fleet"], 1))
        await _show(settings, database)
        await _spread(database)
        yield Fleet(database=database, environment=environment, credentials=credentials)
    finally:
        await database.close()


def _configuration(backend: Backend) -> str:
    """benchbot.toml."""
    hardware = {"backend": backend.name, "price_usd_per_hour": 1.0, "at_once": LEASES, **CLOUD}
    lines = []
    for name, table in {f"backends.{backend.name}": backend.settings.options, "hardware.fleet": hardware}.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    return "\n".join(lines)


async def _rows(database: Database, backend: Backend, call: Call) -> tuple[str, ...]:
    """A request with one lease for each machine; the agents' credentials."""
    planned, now = plan_of(call), time.time()
    assert isinstance(planned, Plan)
    (lease,), (offer,) = planned.leases, await backend.offers(CLOUD)
    credentials, leases, runs, machines = [], [], [], []
    async with database.write() as tx:
        for _ in range(LEASES):
            lease_id, credential = random_id(), random_id()
            order = MachineOrder(
                name=f"bb-main-{lease_id}-0",
                deployment="main",
                lease_id=lease_id,
                server_url="http://127.0.0.1",
                token="",
                deadline_at=now + 36_000,
                offer=offer,
                options=CLOUD,
            )
            await backend.create(order)
            await tx.execute(new_request(database, lease_id, lease_id, "command", call, now))
            credentials.append(credential)
            leases.append(_lease(order, dump(lease), credential) | {"created_at": now})
            runs += [
                {"id": random_id(), "lease_id": lease_id, "commit": call.head_sha, **asdict(run)} for run in lease.runs
            ]
            machines.append(_machine(order) | {"created_at": now, "up_at": now})
        await tx.execute(update(Request).values(state="running"))
        await tx.execute(insert(Lease), leases)
        await tx.execute(update(Lease).values(beat_at=now, started_at=now))
        await tx.execute(insert(Run), runs)
        await tx.execute(update(Run).where(Run.position == 0).values(state="running", started_at=now))
        await tx.execute(insert(Machine), machines)
    return tuple(credentials)


def _lease(order: MachineOrder, planned: str, credential: str) -> dict[str, object]:
    return {
        "id": order.lease_id,
        "state": "running",
        "request_id": order.lease_id,
        "position": 0,
        "planned": planned,
        "hardware": "fleet",
        "deadline_at": order.deadline_at,
        "phase": "run 1 of 4: head, seed 1",
        "nonce_hash": fingerprint(order.name),
        "credential_hash": fingerprint(credential),
        "tries": 1,
    }


def _machine(order: MachineOrder) -> dict[str, object]:
    return {
        "id": order.name,
        "state": "up",
        "lease_id": order.lease_id,
        "backend": order.offer.backend,
        "hardware": "fleet",
        "zone": order.offer.zone,
        "offer": dump(order.offer),
        "attempt": 1,
        "token": "",
        "trusted": True,
        "deadline_at": order.deadline_at,
        "price_usd_per_hour": 1.0,
    }


async def _show(settings: Settings, database: Database) -> None:
    """Let the requests write what is to be shown, and take it for shown: GitHub is no part of this figure."""
    worker = Requests(
        Services(
            settings=settings,
            database=database,
            github=None,
            backends={},
            artifacts=LocalStore(settings.data_folder / "artifacts"),
            clock=time.time,
        )
    )
    while await worker.tick():
        pass
    async with database.write() as tx:
        for message in await tx.scalars(select(Message)):
            digest = hashlib.sha256(message.wanted.encode()).hexdigest()
            shown = {"state": "sent", "due_at": None, "remote_id": 1, "sent": digest}
            await tx.execute(update(Message).where(Message.id == message.id).values(**shown))


async def _spread(database: Database) -> None:
    """Every row is looked at once a minute, each in its own moment."""
    begin = time.time() + WARM_S
    async with database.write() as tx:
        for table in (Request, Lease, Machine):
            for at, name in enumerate(await tx.scalars(select(table.id).order_by(table.id))):
                due = update(table).where(table.id == name).values(due_at=begin + LOOK_S * at / LEASES)
                await tx.execute(due)
