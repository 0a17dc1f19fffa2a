"""The picture of head and base over one lease, as comments show it. Drawn once, from the files that runs shipped."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from bot.core.nouns import Call, PlannedLease
from bot.measure.metrics import Metric, find_curve
from bot.measure.readers import read_folder
from bot.report.figures import Panel, Trace, curves_png
from bot.store.codec import load
from bot.store.leases import of_request, runs_of
from bot.store.tables import Run
from bot.web.access import request_of
from bot.web.keys import SERVICES
from runners.protocol import LOG_FOLDER

MOST_PANELS = 4


def add_routes(app: web.Application) -> None:
    """Below the page of a request."""
    app.router.add_get("/requests/{request}/curves/{lease}.png", curves)


async def curves(request: web.Request) -> web.StreamResponse:
    """PNG; kept beside the artifacts, since what it shows does not change any more."""
    services = request.app[SERVICES]
    owner = await request_of(request)
    async with services.database.read() as tx:
        leases = {lease.id: lease for lease in await of_request(tx, owner.id)}
        lease = leases.get(request.match_info["lease"])
        runs = await runs_of(tx, [lease.id]) if lease else ()
    if lease is None or lease.state != "done":
        raise web.HTTPNotFound(text="There is no picture of this.")
    kept = services.settings.data_folder / "pictures" / f"{lease.id}.png"
    if not kept.is_file():
        config = load(Call, owner.call).config
        planned = load(PlannedLease, lease.planned)
        metrics = config.benchmarks[planned.benchmark].metrics if config else ()
        folders = {run.id: (await services.logs_of(run.id)) / LOG_FOLDER for run in runs}
        await asyncio.to_thread(_draw, kept, metrics, runs, folders)
    return web.FileResponse(kept, headers={"Cache-Control": "public, max-age=86400", "Content-Type": "image/png"})


def _draw(kept: Path, metrics: Sequence[Metric], runs: Sequence[Run], folders: dict[str, Path]) -> None:
    readings = {run.id: read_folder(folders[run.id]) for run in runs if folders[run.id].is_dir()}
    panels = []
    for metric in sorted((m for m in metrics if m.tag), key=lambda m: not m.gate)[:MOST_PANELS]:
        sides: dict[str, list[Trace]] = {"head": [], "base": []}
        for run in runs:
            curve = find_curve(metric, readings[run.id]) if run.id in readings else None
            if curve is not None:
                sides[run.side].append(Trace(steps=curve.steps, values=curve.values))
        if sides["head"] or sides["base"]:
            panels.append(
                Panel(label=metric.name, unit=metric.unit, head=tuple(sides["head"]), base=tuple(sides["base"]))
            )
    picture = curves_png(panels)
    kept.parent.mkdir(parents=True, exist_ok=True)
    # two visitors may draw at once: the file appears whole or not at all
    half = kept.with_suffix(f".{id(panels)}")
    half.write_bytes(picture)
    half.replace(kept)
