"""Leases: a slot, a machine, an agent that claims, runs until it says it is done, numbers read from what it shipped."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Executable, delete, insert, update

from bot.core.budget import BOOT_S, machine_limit_s
from bot.core.conclusion import deciding
from bot.core.fingerprint import fingerprint_of
from bot.core.nouns import Call, PlannedLease
from bot.core.planning import asks
from bot.core.reasons import Reason, reason
from bot.measure.sequential import decided
from bot.services import Services
from bot.store.codec import dump, load
from bot.store.history import REMEMBERED, Measured, history_of, remember
from bot.store.leases import (
    artifacts_of,
    continue_runs,
    dismiss_machine,
    fingerprint,
    machines_of,
    reset_runs,
    runs_of,
    take_slot,
)
from bot.store.neighbours import classes_of
from bot.store.rows import Change, poke
from bot.store.tables import Artifact, Lease, Machine, Member, Request, Run
from bot.workers.base import Worker
from bot.workers.diverging import Divergence
from bot.workers.measuring import Judged, Left, Shipped, asks_for_weights, judge_lease
from runners.protocol import CHECKPOINT_FOLDER, DEVICE_UNHEALTHY, INTERRUPTED, LOG_FOLDER

# silence after which we look at the machine, and after which we call it lost
SUSPECT_S = 60.0
LOST_S = 300.0
# how often a run is looked at that may be stopped early
LOOK_S = 20.0
MAX_TRIES = 2
# machines in a row that were taken back before anything new had been done
MAX_STALLED = 2
# no agent has claimed the lease
NOBODY = {"nonce_hash": "", "token_hash": "", "credential_hash": ""}


@dataclass(frozen=True, slots=True)
class _Loaded:
    lease: Lease
    request: Request
    runs: tuple[Run, ...]
    machines: tuple[Machine, ...]

    @property
    def machine(self) -> Machine | None:
        """The machine that holds up all others: one that has ended, else one that is not up, else the last one up."""
        ended = [one for one in self.machines if one.state in ("closing", "gone")]
        missing = [one for one in self.machines if one.up_at is None]
        return next(iter(ended or missing or sorted(self.machines, key=lambda one: -(one.up_at or 0.0))), None)

    @property
    def planned(self) -> PlannedLease:
        return load(PlannedLease, self.lease.planned)

    @property
    def look_s(self) -> float:
        """How long a lease that runs is left alone."""
        return LOOK_S if self.planned.stop_diverged else SUSPECT_S


class Leases(Worker[Lease]):
    """Brings each lease from the queue to its numbers, or to the reason why there are none."""

    noun = "lease"
    table = Lease

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._divergence = Divergence()

    async def step(self, row: Lease) -> Change:
        """One decision; whatever happens next is another row's work or a deadline."""
        loaded = await self._load(row)
        # the request is asked too: its own step may come later, and no machine shall start meanwhile
        if "cancel" in (row.want, loaded.request.want) and row.state != "measuring":
            said = row.reason or loaded.request.reason
            why = load(Reason, said) if said else reason("cancelled")
            return self._end(loaded, "cancelled", why)
        steps = {
            "queued": self._place,
            "booting": self._boot,
            "running": self._run,
            "measuring": self._measure,
        }
        return await steps[row.state](loaded)

    async def _load(self, row: Lease) -> _Loaded:
        async with self.services.database.read() as tx:
            request = await tx.get_one(Request, row.request_id)
            runs = tuple(await runs_of(tx, [row.id]))
            of_try = self._name(row, row.tries - 1)
            return _Loaded(row, request, runs, tuple(await machines_of(tx, row.id, of_try)))

    def _name(self, lease: Lease, tries: int) -> str:
        return f"bb-{self.services.settings.deployment}-{lease.id}-{tries}"

    async def _place(self, at: _Loaded) -> Change:
        lease, now = at.lease, self.services.clock()
        if any(machine.state != "gone" for machine in at.machines):
            return Change(
                state="queued", due_at=now + 60
            )  # the machine of the last try holds the slot until it is gone
        hardware = self.services.settings.hardware.get(lease.hardware)
        if hardware is None or hardware.backend not in self.services.backends:
            return self._end(at, "failed", reason("config", f"The operator has no hardware named {lease.hardware}."))
        blocked = self.services.backends[hardware.backend].isolates()
        if blocked and not at.request.trusted:
            return self._end(at, "failed", reason("untrusted", blocked))
        if not await take_slot(self.services.database, hardware.name, hardware.at_once, lease.id):
            return Change(state="queued", due_at=now + 60, values={"phase": f"waiting for {hardware.name}"})
        work_s = sum(at.planned.timeout_s for _ in at.runs)
        token = self.services.new_id()
        limit_s = machine_limit_s(work_s)
        deadline_at = now + hardware.wait_s + limit_s
        name, hosts = self._name(lease, lease.tries), at.planned.hosts
        machines = [
            insert(Machine).values(
                id=name if hosts == 1 else f"{name}-{member}",
                state="wanted",
                due_at=now,
                lease_id=lease.id,
                member=member,
                backend=hardware.backend,
                hardware=hardware.name,
                token=token,
                trusted=at.request.trusted,
                created_at=now,
                limit_s=limit_s,
                deadline_at=deadline_at,
            )
            for member in range(hosts)
        ]
        nobody = delete(Member).where(Member.lease_id == lease.id)
        fresh = {
            "token_hash": fingerprint(token),
            "nonce_hash": "",
            "credential_hash": "",
            "outcome": "",
            "beat_at": None,
            "deadline_at": deadline_at,
            "phase": "starting a machine",
            "started_at": lease.started_at or now,
            "tries": lease.tries + 1,
        }
        return Change(state="booting", due_at=now + BOOT_S, values=fresh, writes=(nobody, *machines, self._tell(lease)))

    async def _boot(self, at: _Loaded) -> Change:
        lease, now = at.lease, self.services.clock()
        if lease.nonce_hash:
            # a quick agent may have ended before we saw it begin
            due_at = now if lease.outcome else now + at.look_s
            return Change(state="running", due_at=due_at, writes=(self._tell(lease),))
        if at.machine and at.machine.state in ("closing", "gone"):
            return await self._lost(at, at.machine.code, at.machine.sentence)
        machine, hardware = at.machine, self.services.settings.hardware.get(lease.hardware)
        if machine is not None and machine.up_at is None:
            # the cloud has none yet; waiting again from the start would not help
            end_at = machine.created_at + (hardware.wait_s if hardware else 0.0)
            if now >= end_at:
                return self._end(at, "failed", reason("no_capacity", machine.sentence))
            return Change(state="booting", due_at=end_at, writes=(self._tell(lease),))
        begun = machine.up_at if machine and machine.up_at else now
        if now >= begun + BOOT_S:
            return await self._lost(at, "boot_timeout", "")
        return Change(state="booting", due_at=begun + BOOT_S, writes=(self._tell(lease),))

    async def _run(self, at: _Loaded) -> Change:
        lease, now = at.lease, self.services.clock()
        if lease.outcome == "second_claim":
            return await self._lost(at, "second_claim", "")
        if lease.outcome == INTERRUPTED:
            return await self._lost(at, "preempted", "")
        if lease.outcome == DEVICE_UNHEALTHY:
            return await self._lost(at, lease.outcome, at.machine.sentence if at.machine else "")
        if lease.outcome:
            return Change(
                state="measuring",
                due_at=now,
                values={"phase": "reading the numbers"},
                writes=(dismiss_machine(lease.id), self._tell(lease)),
            )
        if at.machine is None or at.machine.state in ("closing", "gone"):
            return await self._lost(at, (at.machine and at.machine.code) or "agent_lost", "")
        if lease.deadline_at is not None and now >= lease.deadline_at:
            return self._end(at, "failed", reason("lease_timeout"))
        silent_s = now - (lease.beat_at or now)
        if silent_s >= LOST_S:
            return await self._lost(at, "agent_lost", "")
        look = [poke(Machine, Machine.lease_id == lease.id)] if silent_s >= SUSPECT_S else []
        if at.planned.stop_diverged:
            look += await self._diverged(at)
        seen = await self._decided(at) if at.planned.until_decided else {}
        if "planned" in seen:
            look.append(delete(Run).where(Run.id.in_([run.id for run in at.runs if run.state == "queued"])))
        return Change(state="running", due_at=now + at.look_s, values=seen, writes=tuple(look))

    async def _decided(self, at: _Loaded) -> dict[str, object]:
        """What a lease is to remember after a round of seeds that are alike on both sides: go on, or a shorter plan."""
        ended = [run for run in at.runs if run.state in ("done", "failed")]
        behind = len(ended)
        asks_now = behind < len(at.runs) and asks(at.planned, at.planned.runs[behind])
        if not asks_now or behind <= at.lease.looked or ended != list(at.runs[:behind]):
            return {}
        looked = await self._judged(at, tuple(ended))
        if not decided(deciding(looked.comparisons)):
            return {"looked": behind}
        return {"looked": behind, "planned": dump(replace(at.planned, runs=at.planned.runs[:behind]))}

    async def _diverged(self, at: _Loaded) -> list[Executable]:
        """Have the run stopped that goes on without a number; its agent hears of it with its next heartbeat."""
        config = load(Call, at.request.call).config
        benchmark = config.benchmarks.get(at.planned.benchmark) if config else None
        running = next((run for run in at.runs if run.state == "running" and not run.stop), None)
        if benchmark is None or running is None:
            return []
        logs = (await self.services.logs_of(running.id)) / LOG_FOLDER
        why = await asyncio.to_thread(self._divergence.look, running.id, logs, benchmark.metrics)
        return [update(Run).where(Run.id == running.id).values(stop=why)] if why else []

    async def _measure(self, at: _Loaded) -> Change:
        judged = await self._judged(at, at.runs)
        numbers = {
            "comparisons": dump(judged.comparisons),
            "notes": dump(judged.notes),
            "finished_at": self.services.clock(),
            "phase": "",
        }
        remembered = self._remember(at, judged) if at.request.kind in REMEMBERED else []
        return Change(state="done", values=numbers, writes=(self._tell(at.lease), *remembered))

    async def _judged(self, at: _Loaded, runs: tuple[Run, ...]) -> Judged:
        """What these runs have shipped, against what was measured of their base before."""
        call = load(Call, at.request.call)
        benchmark = call.config.benchmarks.get(at.planned.benchmark) if call.config else None
        async with self.services.database.read() as tx:
            history = await history_of(tx, call, at.planned)
            classes = await classes_of(tx, at.request.repository_id, benchmark.metrics if benchmark else ())
        shipped = Shipped(
            runs=runs,
            left=await self._left(at, runs),
            moved=at.lease.continued > 0,
            history=history,
            classes=classes,
        )
        return await asyncio.to_thread(judge_lease, at.request.call, at.planned, shipped)

    def _remember(self, at: _Loaded, judged: Judged) -> list[Executable]:
        """What was measured of the default branch becomes history; runs of a pull request never do."""
        call = load(Call, at.request.call)
        if call.config is None or at.planned.benchmark not in call.config.benchmarks:
            return []
        fingerprint = fingerprint_of(call.config, at.planned, call.hardware.get(at.planned.hardware))
        measured = [Measured(metric=one.metric, samples=one.head + one.base) for one in judged.comparisons]
        services = self.services
        return remember(services.database, at.request.repository_id, fingerprint, measured, services.clock())

    async def _left(self, at: _Loaded, runs: Sequence[Run]) -> dict[str, Left]:
        services, wanted = self.services, asks_for_weights(at.request.call, at.planned)
        return {
            run.id: Left(await services.logs_of(run.id), await services.weights_of(run.id) if wanted else None)
            for run in runs
        }

    async def _lost(self, at: _Loaded, code: str, sentence: str) -> Change:
        why = reason(code or "agent_lost", sentence)
        if why.code == "preempted":
            return await self._continue(at, why)
        if not why.retry or at.lease.tries >= MAX_TRIES:
            return self._end(at, "failed", why)
        again = {"phase": "trying another machine", "looked": 0, **NOBODY}
        reset = reset_runs(at.lease.id, [run.id for run in at.runs])
        return Change(
            state="queued",
            due_at=self.services.clock(),
            values=again,
            writes=(dismiss_machine(at.lease.id), *reset, self._tell(at.lease)),
        )

    async def _continue(self, at: _Loaded, why: Reason) -> Change:
        """Another machine goes on from what has arrived here, as long as each one brings the work forward."""
        lease = at.lease
        async with self.services.database.read() as tx:
            progress = progress_of(at.runs, await artifacts_of(tx, [run.id for run in at.runs]))
        stalled = lease.stalled + 1 if progress == lease.progress else 0
        if stalled >= MAX_STALLED:
            return self._end(at, "failed", reason(why.code, f"{why.sentence} Twice in a row nothing had been done."))
        values = {
            "phase": "continuing on another machine",
            "progress": progress,
            "stalled": stalled,
            "continued": lease.continued + (1 if progress else 0),
            **NOBODY,
        }
        writes = (dismiss_machine(lease.id), continue_runs(lease.id), self._tell(lease))
        return Change(state="queued", due_at=self.services.clock(), values=values, writes=writes)

    def _end(self, at: _Loaded, state: str, why: Reason) -> Change:
        unfinished = "cancelled" if state == "cancelled" else "failed"
        stopped = (
            update(Run)
            .where(Run.lease_id == at.lease.id, Run.state.in_(("queued", "running")))
            .values(state=unfinished, reason=why.code, sentence=why.sentence)
        )
        values = {"reason": dump(why), "finished_at": self.services.clock(), "phase": "", "credential_hash": ""}
        return Change(state=state, values=values, writes=(stopped, dismiss_machine(at.lease.id), self._tell(at.lease)))

    def _tell(self, lease: Lease) -> Executable:
        return poke(Request, Request.id == lease.request_id)


def progress_of(runs: Sequence[Run], artifacts: Sequence[Artifact]) -> str:
    """A hash of what another machine need not do again: runs that ended and whole checkpoints; empty for nothing."""
    ended = [run.id for run in runs if run.state in ("done", "failed")]
    checkpoints = [one for one in artifacts if one.sha256 and one.path.startswith(f"{CHECKPOINT_FOLDER}/")]
    kept = [f"{one.run_id}/{one.path}:{one.sha256}" for one in checkpoints]
    return fingerprint("\n".join(sorted(ended + kept))) if ended or kept else ""
