"""Downloads of what runs wrote. Untrusted bytes: always as an attachment, never as a page."""

import asyncio
from urllib.parse import quote

from aiohttp import web
from sqlalchemy import select

from bot.artifacts.base import checked
from bot.store.tables import Artifact
from bot.web.access import run_of
from bot.web.keys import SERVICES
from bot.web.live import ENDED, masked_log
from runners.protocol import LOG_FILE


def add_routes(app: web.Application) -> None:
    """Below the page of a run."""
    app.router.add_get("/runs/{run}/files/{path:.+}", download)


async def download(request: web.Request) -> web.StreamResponse:
    """One file, with ranges; its hash is the ETag where it is known."""
    run = await run_of(request)
    try:
        path = str(checked(request.match_info["path"]))
    except ValueError:
        raise web.HTTPNotFound(text="There is no such file.") from None
    services = request.app[SERVICES]
    async with services.database.read() as tx:
        artifact = (
            await tx.scalars(select(Artifact).where(Artifact.run_id == run.id, Artifact.path == path))
        ).one_or_none()
    file = (await services.artifacts.folder(run.id)) / path
    if artifact is None or not file.is_file() or file.is_symlink():
        raise web.HTTPNotFound(text="There is no such file.")
    name = path.rsplit("/", 1)[-1]
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    if path == LOG_FILE:
        # what a script prints may hold a secret; its own files are as it wrote them
        shown = await asyncio.to_thread(masked_log, file, ended=run.state in ENDED)
        return web.Response(body=shown, headers=headers)
    if artifact.sha256:
        headers["X-SHA256"] = artifact.sha256
    return web.FileResponse(file, headers=headers)
