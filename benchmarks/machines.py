"""Machines: what a lease is billed beside its trainings, how soon a stock-out is answered, what many leases cost us."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from aiohttp import web
from aiohttp.typedefs import Handler
from sqlalchemy import select

from benchmarks.figures import Figure
from benchmarks.fleet import CLOUD, LEASES, WARM_S, call_for, fleet
from benchmarks.hosts import hosts_of
from benchmarks.processes import bot, cpu_s, in_thread
from benchmarks.requests import training_s, until_finished
from bot.app import Bot, open_bot
from bot.cli.demo import set_stage
from bot.cli.local import local_settings
from bot.core.nouns import Hardware
from bot.services import random_id
from bot.store.requests import new_request
from bot.store.tables import Machine
from tests.harness.gce import ComputeEngine

REQUESTS = 4
# the pull request of the demo that changes nothing: what looks worse would be trained a second time
HARMLESS = 3
COMMAND = "/benchmark digits-resnet set.epochs=2 pairs=1"
# of each kind; more would take longer than the first cool-down, and begin anew
STOCK_OUTS = 10
LATE_S = 0.2
FLIGHT_S = 60.0
STOCK_OUT = "The zone does not have enough resources available"


def measure() -> Iterator[Figure]:
    """All figures of the area."""
    yield _billed_overhead()
    yield _next_offer()
    yield _leases_in_flight()


@asynccontextmanager
async def _serving(engine: ComputeEngine) -> AsyncIterator[ComputeEngine]:
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()
    if engine.violations:
        raise RuntimeError(engine.violations[0])


# ---- what is billed -------------------------------------------------------------------------------------------------


def _billed_overhead() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        seconds = asyncio.run(_billed(Path(folder)))
    told = ", ".join(f"{each:.2f}" for each in seconds)
    return Figure(
        name="machines.billed_overhead",
        value=max(seconds),
        unit="s",
        bar=10,
        how="order of an instance until the cloud has none, minus the trainings' own time; a fresh disk each time, no "
        f"time to boot or to go; 2 runs of 2 epochs; the slowest of {told} s",
    )


async def _billed(folder: Path) -> list[float]:
    """Seconds that a lease is billed beside its trainings, for one request after the other."""
    seconds = []
    # the repository of the demo wants `local`: here that is a cloud
    hardware = {"local": Hardware(name="local", backend="gce", options=CLOUD)}
    async with _serving(ComputeEngine(time.time)) as engine:
        backends = {"gce": engine.backend(folder).settings.options}
        async with (
            set_stage(folder, hardware=hardware, backends=backends) as on,
            hosts_of(engine, folder / "hosts", on.bot.services.settings.agent_url) as hosts,
        ):
            for count in range(1, REQUESTS + 1):
                await asyncio.to_thread(on.maintainer.comment, HARMLESS, COMMAND)
                await until_finished(on, count)
                seconds.append(sum(hosts.billed_s.values()) - await training_s(on))
                hosts.billed_s.clear()
    return seconds


# ---- the next offer -------------------------------------------------------------------------------------------------


class _OutOfStock(ComputeEngine):
    """Notes how long after a refusal the next order comes: since it was told, and since it was decided."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.waited_s: dict[str, list[float]] = {"early": [], "late": []}
        self.unasked_s: list[float] = []
        self._told_at = self._decided_at = 0.0

    def routes(self, app: web.Application) -> None:
        """The same, watched."""
        app.middlewares.append(self._watch)
        super().routes(app)

    @web.middleware
    async def _watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        now, orders = time.monotonic(), request.method == "POST"
        if orders and self._told_at:
            self.waited_s["late" if self._decided_at else "early"].append(now - self._told_at)
            if self._decided_at:
                self.unasked_s.append(now - self._decided_at)
            self._told_at = self._decided_at = 0.0
        answer = await handler(request)
        if orders and request.match_info["zone"] in self.faults.late:
            self._decided_at = now + self.faults.late_s
        refused = answer.status >= 400 if orders else isinstance(answer, web.Response) and STOCK_OUT in f"{answer.text}"
        if refused and not self._told_at:
            self._told_at = time.monotonic()
        return answer


def _next_offer() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        engine = asyncio.run(_refused(Path(folder)))
    early, late = engine.waited_s["early"], engine.waited_s["late"]
    return Figure(
        name="machines.next_offer",
        value=max(early + late),
        unit="s",
        bar=1,
        how=f"answer that a zone has none to the next order, in the running bot; the slowest of {len(early)} told at "
        f"once ({max(early):.3f} s) and {len(late)} told late ({max(late):.3f} s). Since the cloud had decided, before "
        f"it was asked: at most {max(engine.unasked_s):.1f} s, median {median(engine.unasked_s):.1f} s",
    )


async def _refused(folder: Path) -> _OutOfStock:
    """One lease that tries zone after zone: every other one refuses at once, the others after they had accepted."""
    zones = [f"us-{kind}{number}-a" for number in range(STOCK_OUTS) for kind in ("early", "late")]
    options = {**CLOUD, "zones": ", ".join([*zones, "us-last1-a"])}
    hardware = Hardware(name="cloud", backend="gce", options=options)
    async with _serving(_OutOfStock()) as engine:
        engine.faults.early = {zone: (503, "", STOCK_OUT) for zone in zones if "early" in zone}
        engine.faults.late = {zone: ("ZONE_RESOURCE_POOL_EXHAUSTED", STOCK_OUT) for zone in zones if "late" in zone}
        engine.faults.late_s = LATE_S
        settings = replace(
            local_settings(folder),
            hardware={hardware.name: hardware},
            backends={"gce": engine.backend(folder).settings.options},
        )
        async with open_bot(settings) as opened:
            call = call_for(hardware)
            async with opened.services.database.write() as tx:
                await tx.execute(new_request(opened.services.database, random_id(), "", "local", call, time.time()))
            async with opened.working():
                await _up(opened)
    if len(engine.waited_s["early"]) != STOCK_OUTS or len(engine.waited_s["late"]) != STOCK_OUTS:
        raise RuntimeError("not every refusal was followed by an order")
    return engine


async def _up(opened: Bot) -> None:
    """Returns when the one machine is up."""
    for _ in range(1_000):
        await asyncio.sleep(0.1)
        async with opened.services.database.read() as tx:
            if await tx.scalar(select(Machine.id).where(Machine.state == "up")):
                return
    raise TimeoutError("no zone gave a machine")


# ---- leases in flight -----------------------------------------------------------------------------------------------


def _leases_in_flight() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        share, how = asyncio.run(_flight(Path(folder)))
    return Figure(name="machines.leases_in_flight", value=share, unit="%", bar=50, how=how)


async def _flight(folder: Path) -> tuple[float, str]:
    """Share of a core that the workers take, and how it was measured."""
    async with (
        _serving(ComputeEngine(time.time)) as engine,
        fleet(folder, engine) as flying,
        in_thread(bot(flying.environment, "serve", "--no-worker")) as web_pid,
        in_thread(bot(flying.environment, "work")) as worker_pid,
        flying.beating() as beats,
    ):
        await asyncio.sleep(WARM_S)
        before, calls = (cpu_s(worker_pid), cpu_s(web_pid), len(beats)), engine.calls.total()
        await asyncio.sleep(FLIGHT_S)
        used = cpu_s(worker_pid) - before[0], cpu_s(web_pid) - before[1]
        answers, calls = beats[before[2] :], engine.calls.total() - calls
        await flying.check()
    return 100 * used[0] / FLIGHT_S, (
        f"{LEASES} leases with a machine each for {FLIGHT_S:.0f} s, `benchbot work` beside `benchbot serve`: "
        f"{len(answers) / FLIGHT_S:.0f} heartbeats a second, the slowest answered in {max(answers):.2f} s; {calls} "
        f"calls of the cloud; the web took {100 * used[1] / FLIGHT_S:.0f} %"
    )
