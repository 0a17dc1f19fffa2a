"""One Report from the rows of a request. What people see is made of this value alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.core.budget import waiting_sentence
from bot.core.conclusion import conclude, join
from bot.core.money import total_usd
from bot.core.nouns import BenchmarkReport, Call, Link, PlannedLease, Report, RunReport
from bot.core.planning import reproduce_command
from bot.core.reasons import Reason, reason
from bot.measure.verdict import Comparison
from bot.store.codec import load
from bot.store.database import Transaction
from bot.store.leases import artifacts_of, machine_of, of_request, runs_of
from bot.store.records import outside_of
from bot.store.tables import Artifact, Lease, Machine, Request, Run
from runners.protocol import CHECKPOINT_FOLDER

# pretending otherwise would make two measurements of what is one
SAME_HOST = "The suspected regression was repeated on the same host: this hardware has no other machine."
STATES = {"accepted": "queued", "waiting": "queued", "running": "running", "reporting": "done", "done": "done"}


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of one request."""

    request: Request
    leases: Sequence[Lease]
    runs: Sequence[Run]
    artifacts: Sequence[Artifact]
    machines: dict[str, Machine]


async def rows_of(tx: Transaction, request: Request) -> Rows:
    """Load what a report is made of."""
    leases = await of_request(tx, request.id)
    runs = await runs_of(tx, [lease.id for lease in leases])
    machines = {lease.id: machine for lease in leases if (machine := await machine_of(tx, lease.id))}
    return Rows(request, leases, runs, await artifacts_of(tx, [run.id for run in runs]), machines)


def build(rows: Rows, base_url: str) -> Report:
    """The report as it stands now; verdicts only when every lease is final."""
    request, call = rows.request, load(Call, rows.request.call)
    benchmarks = tuple(_benchmark(rows, lease, base_url) for lease in rows.leases)
    if request.state in ("reporting", "done"):
        benchmarks = _joined(benchmarks, rows)
    finished = all(lease.state in ("done", "failed", "cancelled") for lease in rows.leases)
    cancelled = request.want == "cancel" and any(lease.state == "cancelled" for lease in rows.leases)
    verdict = None
    why = load(Reason, request.reason) if request.reason else None
    state = STATES[request.state]
    if state == "running" and all(lease.state == "queued" for lease in rows.leases):
        state = "queued"
    if request.state in ("reporting", "done"):
        if cancelled or (request.want == "cancel" and not rows.leases):
            state = "cancelled"
        elif finished and benchmarks:
            verdict, benchmarks = conclude(benchmarks)
        else:
            verdict = "not measured"
    page = f"{base_url}/requests/{request.id}"
    return Report(
        request_id=request.id,
        kind=request.kind,
        full_name=request.full_name,
        number=request.number,
        command=request.command,
        requester=request.requester,
        head_sha=request.head_sha,
        base_sha=request.base_sha,
        config_sha=call.config_sha,
        baseline=call.baseline,
        state=state,
        verdict=verdict,
        benchmarks=benchmarks,
        links=_links(rows, page) if request.kind != "local" else (),
        reason=why,
        outdated_by=request.outdated_by,
        next_commands=(),
        reproduce=reproduce_command(call),
        targets=call.command.targets,
        created_at=request.created_at,
        finished_at=request.finished_at,
        cost_usd=sum(lease.cost_usd for lease in rows.leases),
        estimate_usd=_estimate(rows),
        waits=_waits(request, call),
        confirmed_by=request.confirmed_by,
    )


def _estimate(rows: Rows) -> float | None:
    if not rows.leases:
        return rows.request.estimate_usd
    return total_usd(load(PlannedLease, lease.planned).estimate_usd for lease in rows.leases)


def _waits(request: Request, call: Call) -> str:
    if request.state != "waiting" or request.lapses_at is None:
        return ""
    return waiting_sentence(request.estimate_usd, call, request.lapses_at)


def _links(rows: Rows, page: str) -> tuple[Link, ...]:
    links = [Link(name="results", url=page)]
    if any(run.state == "done" for run in rows.runs):
        links.append(Link(name="TensorBoard", url=f"{page}/tensorboard/"))
    if any(artifact.path.startswith(f"{CHECKPOINT_FOLDER}/") for artifact in rows.artifacts):
        links.append(Link(name="checkpoints", url=f"{page}#files"))
    return tuple(links)


def _benchmark(rows: Rows, lease: Lease, base_url: str) -> BenchmarkReport:
    planned = load(PlannedLease, lease.planned)
    machine = rows.machines.get(lease.id)
    finished = lease.finished_at or lease.started_at or 0.0
    has_curves = lease.state == "done" and bool(lease.comparisons) and lease.comparisons != "[]"
    return BenchmarkReport(
        lease_id=lease.id,
        benchmark=planned.benchmark,
        scenario=planned.scenario,
        init=planned.init,
        hardware=planned.hardware,
        verdict=None,
        comparisons=load(tuple[Comparison, ...], lease.comparisons) if lease.comparisons else (),
        runs=tuple(_run(rows, run, base_url) for run in rows.runs if run.lease_id == lease.id),
        reason=load(Reason, lease.reason) if lease.reason else None,
        phase=f"repeating a suspected regression: {lease.phase}" if lease.repeats and lease.phase else lease.phase,
        notes=load(tuple[str, ...], lease.notes),
        machine=machine.id if machine else "",
        cost_usd=lease.cost_usd,
        seconds=finished - (lease.started_at or finished),
        curves_url=f"{base_url}/requests/{rows.request.id}/curves/{lease.id}.png" if has_curves else "",
        simulated=planned.simulated,
        repeats=lease.repeats,
    )


def _joined(benchmarks: Sequence[BenchmarkReport], rows: Rows) -> tuple[BenchmarkReport, ...]:
    """Leases with those that repeat them."""
    repeats = {benchmark.repeats: benchmark for benchmark in benchmarks if benchmark.repeats}
    return tuple(
        _repeated(benchmark, repeats[benchmark.lease_id], rows) if benchmark.lease_id in repeats else benchmark
        for benchmark in benchmarks
        if not benchmark.repeats
    )


def _repeated(first: BenchmarkReport, second: BenchmarkReport, rows: Rows) -> BenchmarkReport:
    together, machine = join(first, second), rows.machines.get(second.lease_id)
    same = machine is not None and machine.backend == "local"
    return replace(together, notes=(*together.notes, SAME_HOST)) if same else together


def _run(rows: Rows, run: Run, base_url: str) -> RunReport:
    links = [Link(name="run", url=f"{base_url}/runs/{run.id}")]
    for artifact in rows.artifacts:
        if artifact.run_id == run.id and artifact.path.startswith(f"{CHECKPOINT_FOLDER}/"):
            name = artifact.path.removeprefix(f"{CHECKPOINT_FOLDER}/")
            links.append(Link(name=name, url=f"{base_url}/runs/{run.id}/files/{artifact.path}"))
    return RunReport(
        id=run.id,
        side="head" if run.side == "head" else "base",
        seed=run.seed,
        position=run.position,
        commit=run.commit,
        state=run.state,
        seconds=run.seconds,
        reason=reason(run.reason, run.sentence) if run.reason else None,
        log_tail=run.log_tail,
        imported=run.imported,
        links=tuple(links),
        outside=outside_of(run),
    )
