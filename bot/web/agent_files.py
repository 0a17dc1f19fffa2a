"""The files of runs on their way from an agent, and back to the next one when a machine was taken away."""

from collections.abc import Mapping

from aiohttp import web
from sqlalchemy import select, update

from bot.artifacts.base import WrongOffset, checked
from bot.services import Services
from bot.store.database import insert_into
from bot.store.leases import objects_of, unwanted
from bot.store.tables import Artifact, Lease, Object
from bot.web.agent_api import fail, member_of, run_of_lease, with_lease
from bot.web.keys import SERVICES
from bot.web.manifests import MAX_RUN_BYTES, SPOOL_FILE_BYTES, SPOOL_RUN_BYTES, manifest, named
from runners.protocol import CHUNK_BYTES, PREFIX, is_log

MAX_FILES = 5_000


def add_routes(app: web.Application) -> None:
    """The calls below a run."""
    app.router.add_put(PREFIX + "/runs/{run}/files/{path:.+}", with_lease(upload))
    app.router.add_get(PREFIX + "/runs/{run}/files/{path:.+}", with_lease(download))
    app.router.add_post(PREFIX + "/runs/{run}/manifest", with_lease(manifest))


async def upload(request: web.Request, lease: Lease) -> web.Response:
    """Append the body to a file of a run at `offset`."""
    services = request.app[SERVICES]
    run = await run_of_lease(request, lease)
    try:
        path = named(member_of(request), request.match_info["path"])
        offset = int(request.query.get("offset", "0"))
    except ValueError as error:
        return fail(400, str(error))
    if (request.content_length or 0) > CHUNK_BYTES:
        return fail(413, f"at most {CHUNK_BYTES} bytes in one piece")
    data = await request.read()
    async with services.database.read() as tx:
        known = {one.path: one for one in await tx.scalars(select(Artifact).where(Artifact.run_id == run.id))}
    refused = _refused(services, known, path, offset + len(data))
    if refused:
        return fail(413, refused)
    try:
        end = await services.artifacts.append(run.id, path, offset, data)
    except WrongOffset as wrong:
        return fail(409, str(wrong), offset=wrong.offset)
    except OSError:
        return fail(400, "a file and a folder have the same name")
    row = insert_into(services.database, Artifact).values(id=services.new_id(), run_id=run.id, path=path, size=end)
    fresh = {"size": end, "sha256": "", "object_id": ""}
    async with services.database.write() as tx:
        await tx.execute(row.on_conflict_do_update(index_elements=["run_id", "path"], set_=fresh))
        if path in known and known[path].object_id:
            await tx.execute(unwanted(Object.id == known[path].object_id))
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(beat_at=services.clock()))
    return web.json_response({"offset": end})


def _refused(services: Services, known: Mapping[str, Artifact], path: str, end: int) -> str:
    """Why these bytes may not come through the bot; empty when they may."""
    here = sum(one.size for one in known.values() if not one.object_id)
    if here > MAX_RUN_BYTES or (len(known) >= MAX_FILES and path not in known):
        return "the run has more or larger files than are kept"
    if services.bucket is None:
        return ""
    if not is_log(path) or end > SPOOL_FILE_BYTES or here > SPOOL_RUN_BYTES:
        return "this file goes to the bucket: the manifest says where"
    return ""


async def download(request: web.Request, lease: Lease) -> web.StreamResponse:
    """A file of a run that an earlier machine of this lease has shipped."""
    services = request.app[SERVICES]
    run = await run_of_lease(request, lease)
    try:
        path = checked(request.match_info["path"])
    except ValueError as error:
        return fail(400, str(error))
    async with services.database.read() as tx:
        kept = (await objects_of(tx, run.id)).get(str(path))
    if kept is not None and services.bucket is not None:
        raise web.HTTPTemporaryRedirect(await services.bucket.link(kept.address, path.name))
    file = await services.artifacts.folder(run.id) / path
    return web.FileResponse(file) if file.is_file() else fail(404, "the run has no such file")
