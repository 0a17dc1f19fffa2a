"""Head and base of one lease over each other: the picture in comments, and the numbers that the page draws from.

Made once, from the files that runs shipped.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from bot.core.nouns import Call, PlannedLease
from bot.measure.metrics import Metric
from bot.measure.picking import find_curve, in_unit
from bot.measure.readers import read_folder
from bot.measure.reading import Curve
from bot.report.figures import Panel, Trace, curves_png
from bot.report.overlay import overlay
from bot.store.codec import load
from bot.store.leases import of_request, runs_of
from bot.store.records import metrics_of
from bot.store.tables import Run
from bot.web.access import request_of
from bot.web.keys import SERVICES
from runners.protocol import LOG_FOLDER

MOST_PANELS = 4
MOST_METRICS = 40


def add_routes(app: web.Application) -> None:
    """Below the page of a request."""
    app.router.add_get("/requests/{request}/curves/{lease}.png", picture)
    app.router.add_get("/requests/{request}/curves/{lease}.json", numbers)


class _Curves(NamedTuple):
    """A metric, and the curves of its runs by side."""

    metric: Metric
    sides: Mapping[str, list[Curve]]


async def picture(request: web.Request) -> web.StreamResponse:
    """PNG."""
    return await _kept(request, "png", _draw)


async def numbers(request: web.Request) -> web.StreamResponse:
    """JSON: a list of what `bot.report.overlay` says of each metric."""
    return await _kept(request, "json", _tell)


async def _kept(request: web.Request, form: str, make: Callable[[Sequence[_Curves]], bytes]) -> web.StreamResponse:
    """Kept beside the artifacts, since what it shows does not change any more."""
    services = request.app[SERVICES]
    owner = await request_of(request)
    async with services.database.read() as tx:
        leases = {lease.id: lease for lease in await of_request(tx, owner.id)}
        lease = leases.get(request.match_info["lease"])
        # with those of the lease that repeats it, once that has ended
        mine = [
            one.id for one in leases.values() if lease and lease.id in (one.id, one.repeats) and one.state == "done"
        ]
        runs = await runs_of(tx, mine)
    if lease is None or lease.state != "done":
        raise web.HTTPNotFound(text="There are no curves of this.")
    kept = services.settings.data_folder / "pictures" / f"{lease.id}-{len(runs)}.{form}"
    if not kept.is_file():
        config = load(Call, owner.call).config
        planned = load(PlannedLease, lease.planned)
        metrics = metrics_of(lease, config.benchmarks[planned.benchmark] if config else None)
        folders = {run.id: (await services.logs_of(run.id)) / LOG_FOLDER for run in runs}
        await asyncio.to_thread(_make, kept, lambda: make(_read(metrics, runs, folders)))
    kind = "image/png" if form == "png" else "application/json"
    return web.FileResponse(kept, headers={"Cache-Control": "public, max-age=86400", "Content-Type": kind})


def _make(kept: Path, make: Callable[[], bytes]) -> None:
    made = make()
    kept.parent.mkdir(parents=True, exist_ok=True)
    # two visitors may come at once: the file appears whole or not at all
    half = kept.with_suffix(f".{id(made)}")
    half.write_bytes(made)
    half.replace(kept)


def _read(metrics: Sequence[Metric], runs: Sequence[Run], folders: Mapping[str, Path]) -> list[_Curves]:
    """The curves of both sides for each metric that has any, gates first."""
    readings = {run.id: read_folder(folders[run.id]) for run in runs if folders[run.id].is_dir()}
    found = []
    for metric in sorted((m for m in metrics if m.tag and not m.is_derived), key=lambda m: not m.gate):
        sides: dict[str, list[Curve]] = {"head": [], "base": []}
        for run in runs:
            curve = find_curve(metric, readings[run.id]) if run.id in readings else None
            if curve is not None and len(curve):
                sides[run.side].append(in_unit(metric, curve))
        if any(sides.values()):
            found.append(_Curves(metric, sides))
    return found


def _draw(found: Sequence[_Curves]) -> bytes:
    panels = []
    for metric, sides in found[:MOST_PANELS]:
        head, base = (
            tuple(Trace(steps=curve.steps, values=curve.values) for curve in sides[side]) for side in ("head", "base")
        )
        panels.append(Panel(label=metric.name, unit="%" if metric.unit == "pp" else metric.unit, head=head, base=base))
    return curves_png(panels)


def _tell(found: Sequence[_Curves]) -> bytes:
    return json.dumps([overlay(metric, sides) for metric, sides in found[:MOST_METRICS]], allow_nan=False).encode()
