"""The page of a run: its log and curves, live while it goes on, and its files."""

from aiohttp import web

from bot.report.page import RunPage, render_run
from bot.store.records import environment_of
from bot.store.reports import build, rows_of
from bot.store.tables import Lease, Request
from bot.web.access import run_of
from bot.web.keys import SERVICES
from bot.web.pages.request import entry


def add_routes(app: web.Application) -> None:
    """One page per run."""
    app.router.add_get("/runs/{run}", page)


async def page(request: web.Request) -> web.Response:
    """The run as it stands now."""
    services = request.app[SERVICES]
    found = await run_of(request)
    async with services.database.read() as tx:
        lease = await tx.get_one(Lease, found.lease_id)
        rows = await rows_of(tx, await tx.get_one(Request, lease.request_id))
    base_url = services.settings.base_url
    report = build(rows, base_url)
    # a lease that was repeated stands there with both leases' runs
    benchmark, run = next((b, run) for b in report.benchmarks for run in b.runs if run.id == found.id)
    shown = RunPage(
        report=report,
        benchmark=benchmark,
        run=run,
        url=f"{base_url}/runs/{run.id}",
        request_url=f"{base_url}/requests/{rows.request.id}",
        tensorboard_url=f"{base_url}/runs/{run.id}/tensorboard/" if run.state != "queued" else "",
        files=tuple(entry(artifact, base_url) for artifact in rows.artifacts if artifact.run_id == run.id),
        environment=environment_of(found),
    )
    return web.Response(text=render_run(shown), content_type="text/html")
