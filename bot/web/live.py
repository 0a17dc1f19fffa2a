"""What pages ask for while they are open: the log from an offset on, and the curves as they stand."""

import asyncio
import math
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.measure.curves import downsample
from bot.measure.readers import read_folder
from bot.report.masking import Masker
from bot.store.tables import Run
from bot.web.access import run_of
from bot.web.keys import SERVICES
from runners.protocol import LOG_FILE, LOG_FOLDER

# agents keep two
MOST_BYTES = 8 * 1024 * 1024
ENDED = ("done", "failed", "cancelled")
MOST_POINTS = 400
MOST_CURVES = 60


def add_routes(app: web.Application) -> None:
    """Below the page of a run."""
    app.router.add_get("/runs/{run}/log", log)
    app.router.add_get("/runs/{run}/curves.json", curves)


async def log(request: web.Request) -> web.Response:
    """Text of the log from byte `offset` on, without secrets; X-Offset says where to go on, X-State how the run is."""
    run = await run_of(request)
    folder = await request.app[SERVICES].logs_of(run.id)
    try:
        offset = max(0, int(request.query.get("offset", "0")))
    except ValueError:
        raise web.HTTPBadRequest(text="offset is a number of bytes") from None
    shown = await asyncio.to_thread(masked_log, folder / LOG_FILE, ended=run.state in ENDED)
    headers = {"X-Offset": str(max(offset, len(shown))), "X-State": run.state, "Cache-Control": "no-store"}
    return web.Response(body=shown[offset:], headers=headers, content_type="text/plain", charset="utf-8")


def masked_log(path: Path, *, ended: bool) -> bytes:
    """A log as everybody may read it, at most its first 8 MB; nothing if it does not exist.

    What grows is masked from its beginning each time: a secret may lie on both sides of any cut. An unfinished last
    line comes when it is finished, so that what has been shown never changes.
    """
    if not path.is_file() or path.is_symlink():
        return b""
    with path.open("rb") as file:
        text = file.read(MOST_BYTES).decode("utf-8", "replace")
    masker = Masker()
    return (masker.feed(text) + (masker.close() if ended else "")).encode()


async def curves(request: web.Request) -> web.Response:
    """Every scalar of the run, thinned so that no extreme is lost."""
    run: Run = await run_of(request)
    folder = await request.app[SERVICES].logs_of(run.id)
    found = await asyncio.to_thread(_curves, folder / LOG_FOLDER)
    return web.json_response({"state": run.state, "curves": found}, headers={"Cache-Control": "no-store"})


def _curves(folder: Path) -> list[dict[str, Any]]:
    if not folder.is_dir():
        return []
    reading = read_folder(folder)
    listed = []
    for (run, tag), curve in list(reading.curves.items())[:MOST_CURVES]:
        thin = downsample(curve, MOST_POINTS)
        points = [
            [int(step), float(value) if math.isfinite(value) else None]
            for step, value in zip(thin.steps, thin.values, strict=True)
        ]
        listed.append({"run": run, "tag": tag, "points": points})
    return listed
