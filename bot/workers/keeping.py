"""What becomes of files after their run: logs move to the bucket, old ones go, and the disk stays within its limit."""

import logging
from collections.abc import Sequence

from sqlalchemy import exists, insert, or_, select, update

from bot.core import retention
from bot.core.nouns import Call, PlannedLease, RepoConfig, Report
from bot.services import Services
from bot.store.codec import load
from bot.store.leases import unwanted
from bot.store.tables import Artifact, Lease, Object, Request, Run
from runners.protocol import LOG_FILE, LOG_FOLDER, is_log

log = logging.getLogger("benchbot.keeping")

EVERY_S = 60.0
RETAIN_EVERY_S = 3600.0
# what somebody looked at just now is not taken away under the reader
IN_USE_S = 900.0
# rows that one round writes
AT_ONCE = 200
ENDED = ("done", "failed", "cancelled")


async def tidy(services: Services) -> None:
    """The round of every minute."""
    if services.bucket is not None:
        await spool(services)
        await make_room(services)


async def spool(services: Services) -> int:
    """Write down that logs of leases which have ended are to be sent to the bucket. How many."""
    bucket, now = services.bucket, services.clock()
    if bucket is None:
        return 0
    known = exists().where(Object.run_id == Artifact.run_id, Object.path == Artifact.path, Object.state == "spooled")
    logs = or_(
        Artifact.path == LOG_FILE,
        Artifact.path.startswith(f"{LOG_FOLDER}/", autoescape=True),
        # those of the other hosts of a lease
        Artifact.path.like(f"host-%/{LOG_FILE}"),
        Artifact.path.like(f"host-%/{LOG_FOLDER}/%"),
    )
    here = (logs, Artifact.object_id == "", Artifact.removed_at.is_(None), Lease.state.in_(ENDED), ~known)
    rows = select(Artifact).join(Run, Run.id == Artifact.run_id).join(Lease, Lease.id == Run.lease_id).where(*here)
    async with services.database.read() as tx:
        found = (await tx.scalars(rows.order_by(Lease.finished_at.desc()).limit(AT_ONCE))).all()
    count = 0
    for one in found:
        if not (await services.artifacts.folder(one.run_id) / one.path).is_file():
            continue  # somebody removed it by hand
        count += 1
        # what a machine that was lost had sent has no hash yet
        size = await services.artifacts.size(one.run_id, one.path)
        sha256 = await services.artifacts.sha256(one.run_id, one.path)
        object_id = services.new_id()
        row = {"id": object_id, "state": "spooled", "due_at": now, "created_at": now, "run_id": one.run_id}
        about = {"path": one.path, "size": size, "sha256": sha256}
        async with services.database.write() as tx:
            await tx.execute(
                insert(Object).values(**row, **about, address=bucket.address(one.run_id, object_id, one.path))
            )
            await tx.execute(update(Artifact).where(Artifact.id == one.id).values(size=size, sha256=sha256))
    services.wake()
    return count


async def make_room(services: Services) -> Sequence[str]:
    """Remove copies of what is in the bucket, the least recently used runs first, until the limit is kept."""
    usage = await services.artifacts.usage()
    size, gone = sum(one.size for one in usage), []
    for one in usage:
        if size <= services.settings.cache_bytes or services.clock() - one.used_at < IN_USE_S:
            break
        here = (Artifact.run_id == one.run_id, Artifact.object_id == "", Artifact.removed_at.is_(None))
        going = (Run.id == one.run_id, Lease.state.not_in(ENDED))
        async with services.database.read() as tx:
            only_here = await tx.scalar(select(Artifact.id).where(*here).limit(1))
            lives = await tx.scalar(select(Lease.id).join(Run, Run.lease_id == Lease.id).where(*going))
        if only_here is None and lives is None:
            await services.artifacts.forget(one.run_id)
            gone.append(one.run_id)
            size -= one.size
    return gone


async def retain(services: Services) -> int:
    """Let go what has outlived its use, by what each repository's newest request says of retention. How many files."""
    async with services.database.read() as tx:
        some = exists().where(Artifact.run_id == Run.id, Artifact.removed_at.is_(None))
        mine = select(Run.lease_id).where(some)
        rows = (
            select(Request.repository_id, Request.id, Request.finished_at, Request.report, Lease.id, Lease.planned)
            .join(Lease, Lease.request_id == Request.id)
            .where(Request.state == "done", Request.kind != "local", Lease.id.in_(mine))
        )
        found = (await tx.execute(rows)).all()
    repositories: dict[int, dict[tuple[str, str], retention.Ended]] = {}
    leases: dict[tuple[str, str], list[str]] = {}
    for repository_id, request_id, finished_at, report, lease_id, planned in found:
        key = (request_id, load(PlannedLease, planned).benchmark)
        leases.setdefault(key, []).append(lease_id)
        ended = repositories.setdefault(repository_id, {})
        if key not in ended:
            ended[key] = retention.Ended(
                request_id=request_id,
                benchmark=key[1],
                finished_at=finished_at or 0.0,
                verdict=_verdict(load(Report, report), key[1]),
            )
    count = 0
    for repository_id, ended in repositories.items():
        config = await _config(services, repository_id)
        for one in retention.outlived(ended.values(), config.keep_good, config.keep_bad):
            for lease_id in leases[one.request_id, one.benchmark]:
                count += await _let_go(services, lease_id, logs_too=one.logs_too)
    services.wake()
    return count


def _verdict(report: Report, benchmark: str) -> str | None:
    """The worst that a benchmark came to: it may have several scenarios."""
    verdicts = [one.verdict for one in report.benchmarks if one.benchmark == benchmark]
    return next((verdict for verdict in verdicts if verdict not in retention.GOOD), verdicts[0] if verdicts else None)


async def _config(services: Services, repository_id: int) -> RepoConfig:
    newest = select(Request.call).where(Request.repository_id == repository_id, Request.kind != "local")
    async with services.database.read() as tx:
        call = await tx.scalar(newest.order_by(Request.created_at.desc(), Request.id).limit(1))
    return (load(Call, call).config if call else None) or RepoConfig()


async def _let_go(services: Services, lease_id: str, *, logs_too: bool) -> int:
    """Mark the files of a lease as removed, and their bytes as unwanted, in one transaction."""
    now = services.clock()
    rows = select(Artifact).join(Run, Run.id == Artifact.run_id).where(Run.lease_id == lease_id)
    async with services.database.write() as tx:
        kept = await tx.scalars(rows.where(Artifact.removed_at.is_(None)))
        going = [one for one in kept if logs_too or not is_log(one.path)]
        for one in going:
            await tx.execute(update(Artifact).where(Artifact.id == one.id).values(removed_at=now))
            if one.object_id:
                await tx.execute(unwanted(Object.id == one.object_id))
                continue
            row = {"id": services.new_id(), "state": "kept", "want": "gone", "due_at": now, "created_at": now}
            await tx.execute(insert(Object).values(**row, run_id=one.run_id, path=one.path, size=one.size))
    return len(going)
