"""The hosts of the pool: invited by the operator, enrolled by themselves, heard of every few seconds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, select, update

from bot.core.pool import Device, HostReport, after_report, kinds_of, quarantine_for, told, trouble_of
from bot.store.codec import dump, load
from bot.store.database import Database, Transaction, insert_into
from bot.store.leases import fingerprint
from bot.store.rows import poke
from bot.store.tables import Host, Machine
from runners.protocol import DEVICE_UNHEALTHY
from runners.spec import MachineOrder, PoolHost

_EMPTY = {"state": "free", "order_id": "", "order": "", "code": "", "said": ""}


class StoredPool:
    """`runners.spec.HostPool` over the rows."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def hosts(self) -> tuple[PoolHost, ...]:
        """All that have enrolled, by name."""
        async with self._database.read() as tx:
            return tuple(_seen(host) for host in await all_hosts(tx) if host.credential_hash)

    async def give(self, host: str, order: MachineOrder) -> bool:
        """The host has it from its next question on."""
        async with self._database.write() as tx:
            row = await _locked(tx, Host.name == host)
            if row is None or row.order_id == order.name:
                return row is not None and row.state != "leaving"
            if row.state != "free" or row.quarantined:
                return False
            given = {"state": "given", "order_id": order.name, "order": dump(order), "used_at": self._clock()}
            await tx.execute(update(Host).where(Host.id == row.id).values(**{**_EMPTY, **given}))
        return True

    async def take_back(self, host: str, name: str) -> None:
        """One that the host has not fetched yet is gone at once."""
        async with self._database.write() as tx:
            row = await _locked(tx, Host.name == host, Host.order_id == name)
            if row is not None:
                values = _EMPTY if row.state == "given" else {"state": "leaving"}
                await tx.execute(update(Host).where(Host.id == row.id).values(**values))


async def all_hosts(tx: Transaction) -> Sequence[Host]:
    """Every row, by name."""
    return (await tx.scalars(select(Host).order_by(Host.name))).all()


async def invite(database: Database, host_id: str, name: str, code: str, until: float) -> None:
    """Let whoever knows the code be the host `name`, once; a host of that name keeps its place until then."""
    invited = {"code_hash": fingerprint(code), "code_until": until}
    row = insert_into(database, Host).values(id=host_id, name=name, **invited)
    async with database.write() as tx:
        await tx.execute(row.on_conflict_do_update(index_elements=[Host.name], set_=invited))


async def enrol(database: Database, code: str, credential: str, now: float) -> str | None:
    """The name of the host that enrols with a code, None for one that opens nothing. Repeated it changes nothing."""
    async with database.write() as tx:
        row = await _locked(tx, Host.code_hash == fingerprint(code))
        if row is None or not credential:
            return None
        if row.credential_hash != fingerprint(credential):
            if row.code_until <= now:
                return None
            values = {"credential_hash": fingerprint(credential), "code_until": 0.0, "seen_at": now}
            await tx.execute(update(Host).where(Host.id == row.id).values(**values))
        return row.name


async def hear(database: Database, credential: str, report: HostReport, now: float) -> Host | None:
    """Write down what a host says; its row as it is now, None for a credential that is nobody's."""
    async with database.write() as tx:
        row = await _locked(tx, Host.credential_hash == fingerprint(credential))
        if row is None or not credential:
            return None
        state, code, said = after_report(row.state, row.order_id, report.holds)
        most = max(row.most, len(report.devices))
        values: dict[str, Any] = {
            "labels": dump(report.labels),
            "devices": dump(report.devices),
            "isolates": report.isolates,
            "most": most,
            "seen_at": now,
            "state": state,
            "code": code,
            "said": said,
        }
        if state == "free" and row.state == "leaving":
            values |= {**_EMPTY, **await _faults(tx, row, trouble_of(report.devices, most))}
        elif state in ("running", "stopped") and row.state in ("given", "sent"):
            # from here on the token is on the host alone
            values["order"] = dump(replace(load(MachineOrder, row.order), token=""))
        await tx.execute(update(Host).where(Host.id == row.id).values(**values))
        if state != row.state:
            await tx.execute(poke(Machine, Machine.id == row.order_id))
        await tx.refresh(row)
        return row


async def release(database: Database, name: str) -> bool:
    """Use a host again, with as many devices as it has now; False when there is no such host."""
    async with database.write() as tx:
        row = await _locked(tx, Host.name == name)
        if row is None:
            return False
        most = len(load(tuple[Device, ...], row.devices))
        await tx.execute(update(Host).where(Host.id == row.id).values(faults=0, quarantined="", most=most))
    return True


async def remove(database: Database, name: str) -> str:
    """Forget a host; why that cannot be done, empty when it is done."""
    async with database.write() as tx:
        row = await _locked(tx, Host.name == name)
        if row is None:
            return "there is no such host"
        if row.order_id:
            return "it holds a lease: cancel that first"
        await tx.execute(delete(Host).where(Host.id == row.id))
    return ""


async def _locked(tx: Transaction, *where: Any) -> Host | None:
    return (await tx.scalars(select(Host).where(*where).with_for_update())).one_or_none()


async def _faults(tx: Transaction, row: Host, trouble: str) -> dict[str, Any]:
    """What a lease that has left the host has done to its devices."""
    # what a framework could not see on it, the agent has told the bot
    blind = select(Machine.sentence).where(Machine.id == row.order_id, Machine.code == DEVICE_UNHEALTHY)
    said = row.said if row.code == DEVICE_UNHEALTHY else await tx.scalar(blind)
    trouble = trouble or said or ""
    faults = row.faults + bool(trouble)
    return {"faults": faults, "quarantined": row.quarantined or quarantine_for(faults, trouble)}


def _seen(row: Host) -> PoolHost:
    devices = load(tuple[Device, ...], row.devices)
    return PoolHost(
        name=row.name,
        labels=frozenset(load(tuple[str, ...], row.labels)),
        devices=told(devices),
        kinds=kinds_of(devices),
        isolates=row.isolates,
        state=row.state,
        seen_at=row.seen_at,
        used_at=row.used_at,
        trouble=trouble_of(devices, row.most),
        quarantined=row.quarantined,
        order=load(MachineOrder, row.order) if row.order else None,
        code=row.code,
        said=row.said,
    )
