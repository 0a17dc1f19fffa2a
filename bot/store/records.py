"""The facts of runs from their rows."""

from sqlalchemy import or_, select

from bot.core.environments import Environment
from bot.core.nouns import Benchmark, Call, PlannedLease
from bot.core.records import KeptArtifact, RunFacts
from bot.measure.comparison import Comparison
from bot.measure.metrics import Metric
from bot.measure.outside import Outside
from bot.measure.patterns import settled
from bot.store.codec import load
from bot.store.database import Transaction
from bot.store.leases import artifacts_of, machine_of
from bot.store.tables import Lease, Machine, Request, Run
from runners.spec import Offer

# reasons for which a command has failed by itself
_OWN = ("user_error", "oom", "timeout")


def outside_of(run: Run) -> Outside:
    """What the agent told of a run."""
    done, ended = run.state == "done", run.state == "failed" and run.reason in _OWN and run.exit_status is not None
    return Outside(
        seconds=run.seconds,
        checkout_s=run.checkout_s,
        setup_s=run.setup_s,
        inputs_s=run.inputs_s,
        peak_rss_bytes=run.peak_rss_bytes,
        peak_device_bytes=run.peak_device_bytes,
        device_trouble=run.device_trouble,
        exit_status=run.exit_status if done or ended else None,
        passed=done if done or ended else None,
    )


def environment_of(run: Run) -> Environment | None:
    """What the agent found in the environment of a run's side."""
    return load(Environment, run.environment) if run.environment else None


def metrics_of(lease: Lease, benchmark: Benchmark | None) -> tuple[Metric, ...]:
    """The metrics of a lease's benchmark; patterns as what they were found to stand for once it was judged."""
    compared = load(tuple[Comparison, ...], lease.comparisons) if lease.comparisons else ()
    return settled(benchmark.metrics if benchmark else (), [one.metric for one in compared])


async def facts_of(tx: Transaction, name: str) -> tuple[RunFacts, ...]:
    """All runs of a request, or the one run of that id; nothing where there is neither."""
    rows = (
        select(Run, Lease, Request).join(Lease, Run.lease_id == Lease.id).join(Request, Lease.request_id == Request.id)
    )
    mine = rows.where(or_(Run.id == name, Request.id == name)).order_by(Lease.position, Run.position)
    found = []
    for run, lease, request in (await tx.execute(mine)).all():
        machine = await machine_of(tx, lease.id)
        files = await artifacts_of(tx, [run.id])
        kept = [one for one in files if one.removed_at is None]
        artifacts = tuple(KeptArtifact(path=one.path, size=one.size, sha256=one.sha256) for one in kept)
        found.append(_facts(run, lease, request, machine, artifacts))
    return tuple(found)


def _facts(
    run: Run, lease: Lease, request: Request, machine: Machine | None, artifacts: tuple[KeptArtifact, ...]
) -> RunFacts:
    planned, config = load(PlannedLease, lease.planned), load(Call, request.call).config
    benchmark = config.benchmarks.get(planned.benchmark) if config else None
    return RunFacts(
        run_id=run.id,
        full_name=request.full_name,
        number=request.number,
        command=request.command,
        requester=request.requester,
        commit=run.commit,
        side="head" if run.side == "head" else "base",
        seed=run.seed,
        state=run.state,
        reason=run.reason,
        planned=planned,
        metrics=metrics_of(lease, benchmark),
        inputs=benchmark.inputs if benchmark else (),
        backend=machine.backend if machine else "",
        machine=machine.id if machine else "",
        offer=load(Offer, machine.offer) if machine and machine.offer else None,
        started_at=run.started_at,
        outside=outside_of(run),
        environment=environment_of(run),
        cost_usd=lease.cost_usd,
        artifacts=artifacts,
    )
