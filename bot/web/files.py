"""Downloads of what runs wrote. Untrusted bytes: always as an attachment, never as a page."""

import asyncio
from urllib.parse import quote

from aiohttp import web
from sqlalchemy import select

from bot.artifacts.base import checked
from bot.report.values import removed
from bot.store.tables import Artifact, Object
from bot.web.access import run_of
from bot.web.keys import SERVICES
from bot.web.watching import ENDED, masked_log
from runners.protocol import LOG_FILE


def add_routes(app: web.Application) -> None:
    """Below the page of a run."""
    app.router.add_get("/runs/{run}/files/{path:.+}", download)


async def download(request: web.Request) -> web.StreamResponse:
    """One file with its hash where that is known: from the server's disk, or by a way into the bucket for minutes."""
    run = await run_of(request)
    try:
        path = str(checked(request.match_info["path"]))
    except ValueError:
        raise web.HTTPNotFound(text="There is no such file.") from None
    services = request.app[SERVICES]
    async with services.database.read() as tx:
        mine = (Artifact.run_id == run.id, Artifact.path == path)
        artifact = (await tx.scalars(select(Artifact).where(*mine))).one_or_none()
        held = await tx.get(Object, artifact.object_id) if artifact and artifact.object_id else None
    if artifact is None:
        raise web.HTTPNotFound(text="There is no such file.")
    if artifact.removed_at is not None:
        raise web.HTTPGone(text=f"This file was {removed(artifact.removed_at)}.")
    name = path.rsplit("/", 1)[-1]
    headers = {"X-SHA256": artifact.sha256} if artifact.sha256 and path != LOG_FILE else {}
    if held is not None and services.bucket is not None and path != LOG_FILE:
        way = {"Location": await services.bucket.link(held.address, name), "Cache-Control": "no-store"}
        return web.Response(status=302, headers=headers | way)
    file = (await (services.logs_of if path == LOG_FILE else services.artifacts.folder)(run.id)) / path
    if not file.is_file() or file.is_symlink():
        raise web.HTTPNotFound(text="There is no such file.")
    headers |= {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    if path == LOG_FILE:
        # what a script prints may hold a secret; its own files are as it wrote them
        shown = await asyncio.to_thread(masked_log, file, ended=run.state in ENDED)
        return web.Response(body=shown, headers=headers)
    return web.FileResponse(file, headers=headers)
