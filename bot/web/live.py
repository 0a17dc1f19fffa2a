"""What pages ask for while they are open: the log from an offset on, and the curves as they stand."""

import asyncio
import math
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.measure.curves import downsample
from bot.measure.readers import read_folder
from bot.store.tables import Run
from bot.web.access import run_of
from bot.web.keys import SERVICES
from runners.protocol import LOG_FILE, LOG_FOLDER

MOST_BYTES = 256 * 1024
MOST_POINTS = 400
MOST_CURVES = 60


def add_routes(app: web.Application) -> None:
    """Below the page of a run."""
    app.router.add_get("/runs/{run}/log", log)
    app.router.add_get("/runs/{run}/curves.json", curves)


async def log(request: web.Request) -> web.Response:
    """Text of the log from byte `offset` on; X-Offset says where to go on, X-State whether more will come."""
    run = await run_of(request)
    folder = await request.app[SERVICES].artifacts.folder(run.id)
    try:
        offset = max(0, int(request.query.get("offset", "0")))
    except ValueError:
        raise web.HTTPBadRequest(text="offset is a number of bytes") from None
    data = await asyncio.to_thread(_read, folder / LOG_FILE, offset)
    headers = {"X-Offset": str(offset + len(data)), "X-State": run.state, "Cache-Control": "no-store"}
    return web.Response(text=data.decode("utf-8", "replace"), headers=headers, content_type="text/plain")


def _read(path: Path, offset: int) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(MOST_BYTES)
    # a character that is not complete yet is left for the next call
    for cut in range(min(4, len(data))):
        try:
            data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
        return data[: len(data) - cut]
    return data


async def curves(request: web.Request) -> web.Response:
    """Every scalar of the run, thinned so that no extreme is lost."""
    run: Run = await run_of(request)
    folder = await request.app[SERVICES].artifacts.folder(run.id)
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
