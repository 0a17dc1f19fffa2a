"""Leases, runs, machines and the slots of hardware."""

import hashlib
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Executable, delete, exists, func, insert, or_, select, update

from bot.store.database import Database, Transaction
from bot.store.rows import poke
from bot.store.tables import Artifact, Lease, Machine, Member, Object, Run, Slot


def fingerprint(secret: str) -> str:
    """What we keep of a token: its hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


async def of_request(tx: Transaction, request_id: str) -> Sequence[Lease]:
    """The leases of a request, in planned order."""
    return (await tx.scalars(select(Lease).where(Lease.request_id == request_id).order_by(Lease.position))).all()


async def runs_of(tx: Transaction, lease_ids: Sequence[str]) -> Sequence[Run]:
    """Runs of some leases in the order of execution."""
    return (await tx.scalars(select(Run).where(Run.lease_id.in_(lease_ids)).order_by(Run.lease_id, Run.position))).all()


async def artifacts_of(tx: Transaction, run_ids: Sequence[str]) -> Sequence[Artifact]:
    """Files of some runs by path."""
    return (await tx.scalars(select(Artifact).where(Artifact.run_id.in_(run_ids)).order_by(Artifact.path))).all()


async def objects_of(tx: Transaction, run_id: str) -> Mapping[str, Object]:
    """The objects of the bucket that hold files of a run, by path."""
    held = select(Object).join(Artifact, Artifact.object_id == Object.id)
    found = await tx.scalars(held.where(Artifact.run_id == run_id, Artifact.removed_at.is_(None)))
    return {one.path: one for one in found}


async def machine_of(tx: Transaction, lease_id: str) -> Machine | None:
    """The newest machine of a lease."""
    newest = (
        select(Machine)
        .where(Machine.lease_id == lease_id)
        .order_by(Machine.created_at.desc(), Machine.id.desc())
        .limit(1)
    )
    return (await tx.scalars(newest)).one_or_none()


async def take_slot(database: Database, hardware: str, at_once: int, lease_id: str) -> bool:
    """Hold one of the `at_once` places of a hardware name; True also when the lease holds one already."""
    async with database.write() as tx:
        if await tx.scalar(select(Slot.slot).where(Slot.lease_id == lease_id)) is not None:
            return True
        have = set(await tx.scalars(select(Slot.slot).where(Slot.hardware == hardware)))
        for slot in range(at_once):
            if slot not in have:
                await tx.execute(insert(Slot).values(hardware=hardware, slot=slot))
        free = (
            select(func.min(Slot.slot))
            .where(Slot.hardware == hardware, Slot.lease_id.is_(None), Slot.slot < at_once)
            .scalar_subquery()
        )
        taken = await tx.execute(
            update(Slot)
            .where(Slot.hardware == hardware, Slot.lease_id.is_(None), Slot.slot == free)
            .values(lease_id=lease_id)
        )
        return bool(taken.rowcount)  # type: ignore[attr-defined] # a CursorResult, as for every update


async def machines_of(tx: Transaction, lease_id: str, of_try: str) -> Sequence[Machine]:
    """The machines of one try of a lease, whose names begin with `of_try`, in the order of their hosts."""
    mine = or_(Machine.id == of_try, Machine.id.startswith(f"{of_try}-", autoescape=True))
    return (await tx.scalars(select(Machine).where(Machine.lease_id == lease_id, mine).order_by(Machine.member))).all()


async def members_of(tx: Transaction, lease_id: str) -> Sequence[Member]:
    """The hosts that have claimed a lease of several, in their order."""
    return (await tx.scalars(select(Member).where(Member.lease_id == lease_id).order_by(Member.member))).all()


def free_slot(lease_id: str, hardware: str, machine_id: str) -> tuple[Executable, ...]:
    """Give the place back when this machine was the last one of the lease, and wake whoever waits for one."""
    others = exists().where(Machine.lease_id == lease_id, Machine.state != "gone", Machine.id != machine_id)
    return (
        update(Slot).where(Slot.lease_id == lease_id, ~others).values(lease_id=None),
        poke(Lease, Lease.hardware == hardware, Lease.state == "queued"),
    )


def dismiss_machine(lease_id: str) -> Executable:
    """Nobody wants the machine any more: it goes, whatever state it is in."""
    return update(Machine).where(Machine.lease_id == lease_id, Machine.state != "gone").values(want="gone", poked=True)


def continue_runs(lease_id: str) -> Executable:
    """The run that was interrupted waits for another machine, with its files."""
    return (
        update(Run)
        .where(Run.lease_id == lease_id, Run.state == "running")
        .values(state="queued", started_at=None, log_tail="")
    )


def unwanted(*where: ColumnElement[bool]) -> Executable:
    """Nobody wants these objects of the bucket any more: they go, whatever state they are in."""
    return update(Object).where(*where, Object.state != "gone").values(want="gone", poked=True)


def reset_runs(lease_id: str, run_ids: Sequence[str]) -> tuple[Executable, ...]:
    """Runs as they were before a machine was lost, for another try from the start."""
    return (
        delete(Artifact).where(Artifact.run_id.in_(run_ids)),
        unwanted(Object.run_id.in_(run_ids)),
        update(Run)
        .where(Run.lease_id == lease_id)
        .values(
            state="queued",
            started_at=None,
            seconds=None,
            exit_status=None,
            reason="",
            sentence="",
            stop="",
            log_tail="",
        ),
    )
