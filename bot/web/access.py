"""Who may see what. Ids in addresses cannot be guessed; what belongs to a private repository is hidden from everybody
until people can sign in."""

from collections.abc import Mapping
from pathlib import Path

from aiohttp import web
from sqlalchemy import select

from bot.core.nouns import PlannedLease
from bot.store.codec import load
from bot.store.tables import Lease, Request, Run
from bot.web.keys import SERVICES
from runners.protocol import LOG_FOLDER


async def request_of(request: web.Request) -> Request:
    """The request that the address names. Raises HTTPNotFound also for private ones."""
    async with request.app[SERVICES].database.read() as tx:
        found = await tx.get(Request, request.match_info["request"])
    if found is None or found.private:
        raise web.HTTPNotFound(text="There is no such request.")
    return found


async def run_of(request: web.Request) -> Run:
    """The run that the address names. Raises HTTPNotFound also for private ones."""
    async with request.app[SERVICES].database.read() as tx:
        run = await tx.get(Run, request.match_info["run"])
        owner = None
        if run is not None:
            lease = await tx.get_one(Lease, run.lease_id)
            owner = await tx.get_one(Request, lease.request_id)
    if run is None or owner is None or owner.private:
        raise web.HTTPNotFound(text="There is no such run.")
    return run


async def folders_of_request(request: web.Request, request_id: str) -> Mapping[str, Path] | None:
    """TensorBoard's run folders of a request: head and base side by side, named by side and seed."""
    services = request.app[SERVICES]
    async with services.database.read() as tx:
        owner = await tx.get(Request, request_id)
        if owner is None or owner.private:
            return None
        rows = select(Run, Lease).join(Lease, Run.lease_id == Lease.id).where(Lease.request_id == request_id)
        found = (await tx.execute(rows.order_by(Lease.position, Run.position))).all()
    several = len({lease.id for _, lease in found}) > 1
    named = {}
    for run, lease in found:
        planned = load(PlannedLease, lease.planned)
        place = f"{planned.benchmark} {planned.scenario} {planned.init} {planned.hardware}/" if several else ""
        folder = await services.logs_of(run.id)
        named[f"{place}{run.side}/{run.position + 1} seed {run.seed}"] = folder / LOG_FOLDER
    return named


async def folders_of_run(request: web.Request, run_id: str) -> Mapping[str, Path] | None:
    """TensorBoard's run folder of one run."""
    services = request.app[SERVICES]
    async with services.database.read() as tx:
        run = await tx.get(Run, run_id)
        if run is None:
            return None
        lease = await tx.get_one(Lease, run.lease_id)
        owner = await tx.get_one(Request, lease.request_id)
    if owner.private:
        return None
    return {f"{run.side}/seed {run.seed}": (await services.logs_of(run.id)) / LOG_FOLDER}
