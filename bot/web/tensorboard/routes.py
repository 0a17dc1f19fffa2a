"""TensorBoard below the addresses of requests and runs.

Whose folders are shown is decided by our own part of the address, never by what TensorBoard's pages ask for.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aiohttp import web

from bot.web.tensorboard.bridge import answer
from bot.web.tensorboard.calls import Answer, Call
from bot.web.tensorboard.contents import Contents, RunContents, read_contents, size_of
from bot.web.tensorboard.shelf import Limits, Shelf

Folders = Mapping[str, Path]
Resolve = Callable[[web.Request, str], Awaitable[Folders | None]]
"""The folders behind an id, by the names to show; None where there is nothing that this visitor may see."""

LARGEST_BODY = 1 << 20


class Host:
    """What all routes share: threads that read folders, others that answer, and the shelf between them."""

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(2, "tensorboard-reader")
        self._answerers = ThreadPoolExecutor(2, "tensorboard")
        self._shelf: Shelf[Contents] = Shelf(read=_read, executor=self._readers, clock=time.monotonic, limits=Limits())

    async def shown(self, folders: Folders) -> dict[str, RunContents]:
        """All runs in all folders, by the names that a visitor sees."""
        found = await self._shelf.take(folders)
        return {
            name if run == "." else f"{name}/{run}": contents
            for name, runs in found.items()
            for run, contents in runs.items()
        }

    async def ask(self, call: Call, shown: Mapping[str, RunContents]) -> Answer:
        """TensorBoard's answer, which knows of `shown` and nothing else."""
        return await asyncio.get_running_loop().run_in_executor(self._answerers, answer, call, shown)

    async def close(self, _: web.Application) -> None:
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._answerers.shutdown(wait=False, cancel_futures=True)


HOST = web.AppKey("tensorboard_host", Host)


def add_routes(app: web.Application, prefix: str, resolve: Resolve) -> None:
    """Serve TensorBoard at `{prefix}/{id}/tensorboard/`. May be called for several prefixes of one application."""
    if HOST not in app:
        app[HOST] = Host()
        app.on_cleanup.append(app[HOST].close)

    async def folders_of(request: web.Request) -> Folders:
        folders = await resolve(request, request.match_info["id"])
        if folders is None:
            raise web.HTTPNotFound(text="There is nothing to show here.")
        return folders

    async def entrance(request: web.Request) -> web.StreamResponse:
        await folders_of(request)
        raise web.HTTPMovedPermanently(
            request.rel_url.with_path(request.rel_url.raw_path + "/", encoded=True, keep_query=True)
        )

    async def page(request: web.Request) -> web.StreamResponse:
        folders = await folders_of(request)
        return await _serve(request, prefix, folders)

    app.router.add_get(f"{prefix}/{{id}}/tensorboard", entrance)
    app.router.add_get(f"{prefix}/{{id}}/tensorboard/{{inner:.*}}", page)
    app.router.add_post(f"{prefix}/{{id}}/tensorboard/{{inner:.*}}", page)


async def _serve(request: web.Request, prefix: str, folders: Folders) -> web.Response:
    host = request.app[HOST]
    identity = request.match_info["id"]
    call = Call(
        method="POST" if request.method == "POST" else "GET",
        root=f"{prefix}/{identity}/tensorboard",
        path=_inner_path(request.match_info["inner"]),
        query=request.rel_url.raw_query_string,
        experiment=identity,
        accept_encoding=request.headers.get("Accept-Encoding", ""),
        content_type=request.headers.get("Content-Type", ""),
        body=await request.clone(client_max_size=LARGEST_BODY).read(),
    )
    answer = await host.ask(call, await host.shown(folders) if call.wants_data else {})
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


def _inner_path(inner: str) -> str:
    """What TensorBoard is asked for. Its pages may name an experiment in front, which means nothing here."""
    parts = inner.split("/")
    if parts[0] == "experiment":
        del parts[:2]
    if any(part in {".", ".."} or "\\" in part or "\0" in part for part in parts):
        raise web.HTTPNotFound(text="There is nothing to show here.")
    return "/" + "/".join(parts)


def _read(folder: Path) -> tuple[Contents, int]:
    contents = read_contents(folder)
    return contents, size_of(contents)
