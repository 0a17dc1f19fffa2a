"""The files of runs on their way from an agent, and back to the next one when a machine was taken away."""

from dataclasses import dataclass

from aiohttp import web
from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from bot.artifacts.base import WrongOffset, checked
from bot.services import Services
from bot.store.tables import Artifact, Lease, Run
from bot.web.agent_api import body_of, fail, member_of, with_lease
from bot.web.keys import SERVICES
from runners.protocol import CHECKPOINT_FOLDER, CHUNK_BYTES, PREFIX

MAX_FILES = 5_000
MAX_RUN_BYTES = 20 * 1024**3


def add_routes(app: web.Application) -> None:
    """The calls below a run."""
    app.router.add_put(PREFIX + "/runs/{run}/files/{path:.+}", with_lease(upload))
    app.router.add_get(PREFIX + "/runs/{run}/files/{path:.+}", with_lease(download))
    app.router.add_post(PREFIX + "/runs/{run}/manifest", with_lease(manifest))


async def _run_of(services: Services, lease: Lease, request: web.Request) -> Run:
    async with services.database.read() as tx:
        run = await tx.get(Run, request.match_info["run"])
    if run is None or run.lease_id != lease.id:
        raise web.HTTPNotFound(text="this lease has no such run")
    return run


async def upload(request: web.Request, lease: Lease) -> web.Response:
    """Append the body to a file of a run at `offset`."""
    services = request.app[SERVICES]
    run = await _run_of(services, lease, request)
    try:
        path = _named(request, request.match_info["path"])
        offset = int(request.query.get("offset", "0"))
    except ValueError as error:
        return fail(400, str(error))
    if (request.content_length or 0) > CHUNK_BYTES:
        return fail(413, f"at most {CHUNK_BYTES} bytes in one piece")
    data = await request.read()
    async with services.database.read() as tx:
        known = (await tx.execute(select(Artifact.path, Artifact.size).where(Artifact.run_id == run.id))).all()
    if sum(size for _, size in known) > MAX_RUN_BYTES or (len(known) >= MAX_FILES and path not in dict(known)):
        return fail(413, "the run has more or larger files than are kept")
    try:
        end = await services.artifacts.append(run.id, path, offset, data)
    except WrongOffset as wrong:
        return fail(409, str(wrong), offset=wrong.offset)
    except OSError:
        return fail(400, "a file and a folder have the same name")
    insert = sqlite_insert if services.database.engine.dialect.name == "sqlite" else postgres_insert
    row = insert(Artifact).values(id=services.new_id(), run_id=run.id, path=path, size=end)
    async with services.database.write() as tx:
        await tx.execute(row.on_conflict_do_update(index_elements=["run_id", "path"], set_={"size": end, "sha256": ""}))
        await tx.execute(update(Lease).where(Lease.id == lease.id).values(beat_at=services.clock()))
    return web.json_response({"offset": end})


async def download(request: web.Request, lease: Lease) -> web.StreamResponse:
    """A file of a run that an earlier machine of this lease has shipped."""
    services = request.app[SERVICES]
    run = await _run_of(services, lease, request)
    try:
        path = await services.artifacts.folder(run.id) / checked(request.match_info["path"])
    except ValueError as error:
        return fail(400, str(error))
    return web.FileResponse(path) if path.is_file() else fail(404, "the run has no such file")


async def manifest(request: web.Request, lease: Lease) -> web.Response:
    """Files with their hashes; the answer names what differs and from where it is to be sent again.

    What was sent under another name (`sent_as`) gets its own one here, so that an older file of this name stays until
    the newer one has arrived whole. In a `complete` manifest all checkpoints are named: others are removed.
    """
    services, body = request.app[SERVICES], await body_of(request)
    run = await _run_of(services, lease, request)
    wanted, confirmed = [], {}
    for entry in body.get("files", []):
        try:
            told, sent_as = entry["path"], entry.get("sent_as") or entry["path"]
            file = _Sent(told, _named(request, told), _named(request, sent_as), int(entry["size"]))
            digest = str(entry["sha256"])
        except (ValueError, TypeError, KeyError):
            return fail(400, "an entry needs a plain path, size and sha256")
        have = await services.artifacts.size(run.id, file.sent_as)
        if have == file.size and await services.artifacts.sha256(run.id, file.sent_as) == digest:
            if file.sent_as != file.path:
                await services.artifacts.rename(run.id, file.sent_as, file.path)
            confirmed[file] = digest
        elif file.sent_as == file.path or await services.artifacts.sha256(run.id, file.path) != digest:
            if have >= file.size:
                await services.artifacts.truncate(run.id, file.sent_as, 0)
            wanted.append({"path": file.told, "offset": have if have < file.size else 0})
    async with services.database.write() as tx:
        for file, digest in confirmed.items():
            mine = (Artifact.run_id == run.id, Artifact.path == file.sent_as)
            if file.sent_as != file.path:
                await tx.execute(delete(Artifact).where(Artifact.run_id == run.id, Artifact.path == file.path))
            await tx.execute(update(Artifact).where(*mine).values(path=file.path, sha256=digest))
    if body.get("complete") and not wanted and not member_of(request):
        await _keep_only(services, run, {file.path for file in confirmed})
    return web.json_response({"wanted": wanted})


@dataclass(frozen=True, slots=True)
class _Sent:
    """A file of a manifest: as the agent calls it, its name here, and the name that it was sent under."""

    told: str
    path: str
    sent_as: str
    size: int


def _named(request: web.Request, path: str) -> str:
    """A file's name here: the hosts of a lease other than the first have a folder each. Raises ValueError."""
    member = member_of(request)
    return str(checked(f"host-{member}/{path}" if member else path))


async def _keep_only(services: Services, run: Run, paths: set[str]) -> None:
    """Remove checkpoints that the run itself has not kept to its end."""
    async with services.database.write() as tx:
        known = await tx.scalars(select(Artifact.path).where(Artifact.run_id == run.id))
        gone = [path for path in known if path.startswith(f"{CHECKPOINT_FOLDER}/") and path not in paths]
        await tx.execute(delete(Artifact).where(Artifact.run_id == run.id, Artifact.path.in_(gone)))
    for path in gone:
        await services.artifacts.remove(run.id, path)
