"""For the operator's machines: is it alive, and how does it go."""

from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from sqlalchemy import func, select

from bot.store.tables import Controlled, Delivery, Lease, Machine, Message, Request
from bot.web.keys import SERVICES

TABLES: dict[str, type[Controlled]] = {
    "delivery": Delivery,
    "request": Request,
    "lease": Lease,
    "machine": Machine,
    "message": Message,
}
# a row that has been due for longer than this is stuck, and somebody should look
STUCK_S = 600.0


def add_routes(app: web.Application) -> None:
    """Liveness and metrics."""
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/metrics", metrics)


async def healthz(request: web.Request) -> web.Response:
    """200 while the database answers."""
    async with request.app[SERVICES].database.read() as tx:
        await tx.scalar(select(func.count()).select_from(Machine).where(Machine.state == "up"))
    return web.json_response({"status": "ok"})


async def metrics(request: web.Request) -> web.Response:
    """Rows by state, and the age of the oldest row that is overdue: a stuck row shows here first."""
    services = request.app[SERVICES]
    registry = CollectorRegistry()
    rows = Gauge("benchbot_rows", "Rows by noun and state", ["noun", "state"], registry=registry)
    overdue = Gauge("benchbot_oldest_overdue_seconds", "Age of the row due longest", ["noun"], registry=registry)
    async with services.database.read() as tx:
        for noun, table in TABLES.items():
            for state, count in await tx.execute(select(table.state, func.count()).group_by(table.state)):
                rows.labels(noun, state).set(count)
            oldest = await tx.scalar(select(func.min(table.due_at)).where(table.due_at <= services.clock()))
            overdue.labels(noun).set(services.clock() - oldest if oldest is not None else 0)
    return web.Response(body=generate_latest(registry), headers={"Content-Type": "text/plain; version=0.0.4"})
