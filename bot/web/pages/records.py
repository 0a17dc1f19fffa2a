"""Results as records for other programs: of one run, or of all runs of a request."""

import asyncio

from aiohttp import web

from bot.report.record import look, record, to_csv, to_json, to_model_index
from bot.store.records import facts_of
from bot.web.access import request_of, run_of
from bot.web.keys import SERVICES
from runners.protocol import LOG_FOLDER

FORMS = {
    "json": (to_json, "application/json"),
    "csv": (to_csv, "text/csv"),
    "yaml": (to_model_index, "application/yaml"),
}


def add_routes(app: web.Application) -> None:
    """Below the pages of runs and requests."""
    app.router.add_get("/runs/{run}/record.{form:json|csv|yaml}", of_run)
    app.router.add_get("/requests/{request}/records.{form:json|csv|yaml}", of_request)


async def of_run(request: web.Request) -> web.Response:
    """One run: JSON as `bot.report.record.Record`, a row of CSV, or a model card's index."""
    return await _told(request, (await run_of(request)).id)


async def of_request(request: web.Request) -> web.Response:
    """All runs of a request, in their order."""
    return await _told(request, (await request_of(request)).id)


async def _told(request: web.Request, name: str) -> web.Response:
    services = request.app[SERVICES]
    async with services.database.read() as tx:
        facts = await facts_of(tx, name)
    records = []
    for one in facts:
        folder = await services.logs_of(one.run_id)
        seen = await asyncio.to_thread(look, folder / LOG_FOLDER, await services.weights_of(one.run_id))
        records.append(record(one, seen))
    write, kind = FORMS[request.match_info["form"]]
    return web.Response(text=write(records), content_type=kind, charset="utf-8", headers={"Cache-Control": "no-store"})
