"""The page of a request: the report in full, and everything to download."""

from aiohttp import web

from bot.core.nouns import Report
from bot.report.page import FileEntry, Moment, RequestPage, RunFiles, render_request
from bot.services import Services
from bot.store.codec import load
from bot.store.reports import Rows, build, rows_of
from bot.store.tables import Artifact
from bot.web.access import request_of
from bot.web.keys import SERVICES


def add_routes(app: web.Application) -> None:
    """One page per request."""
    app.router.add_get("/requests/{request}", page)


async def page(request: web.Request) -> web.Response:
    """The report as it stands now."""
    services = request.app[SERVICES]
    owner = await request_of(request)
    async with services.database.read() as tx:
        rows = await rows_of(tx, owner)
    report = load(Report, owner.report) if owner.state == "done" else build(rows, services.settings.base_url)
    shown = RequestPage(
        report=report,
        pull_url=f"{services.settings.github_web_url}/{owner.full_name}/pull/{owner.number}" if owner.number else "",
        files=files_of(rows, report, services),
        timeline=_timeline(rows),
    )
    return web.Response(text=render_request(shown), content_type="text/html")


def files_of(rows: Rows, report: Report, services: Services) -> tuple[RunFiles, ...]:
    """Every run of the report with its files."""
    base_url = services.settings.base_url
    return tuple(
        RunFiles(
            run=run,
            benchmark=benchmark.benchmark,
            url=f"{base_url}/runs/{run.id}",
            files=tuple(entry(artifact, base_url) for artifact in rows.artifacts if artifact.run_id == run.id),
        )
        for benchmark in report.benchmarks
        for run in benchmark.runs
    )


def entry(artifact: Artifact, base_url: str) -> FileEntry:
    """A file as pages list it."""
    url = f"{base_url}/runs/{artifact.run_id}/files/{artifact.path}"
    about = {"path": artifact.path, "url": url, "sha256": artifact.sha256}
    return FileEntry(**about, size=artifact.size, removed_at=artifact.removed_at)


def _timeline(rows: Rows) -> tuple[Moment, ...]:
    owner = rows.request
    moments = [Moment(at=owner.created_at, sentence=f"Asked for by {owner.requester}.")]
    for lease in rows.leases:
        machine = rows.machines.get(lease.id)
        if lease.started_at:
            moments.append(Moment(at=lease.started_at, sentence=f"A place on {lease.hardware} was free."))
        if machine and machine.up_at:
            moments.append(Moment(at=machine.up_at, sentence=f"Machine {machine.id} was created."))
        if machine and machine.gone_at:
            moments.append(Moment(at=machine.gone_at, sentence=f"Machine {machine.id} was gone."))
    for run in rows.runs:
        if run.started_at:
            moments.append(Moment(at=run.started_at, sentence=f"Training began: {run.side}, seed {run.seed}."))
    if owner.finished_at:
        moments.append(Moment(at=owner.finished_at, sentence="The report was finished."))
    return tuple(sorted(moments, key=lambda moment: moment.at))
