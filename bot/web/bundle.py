"""The agent as one file, as machines fetch it."""

import asyncio

from aiohttp import web

from runners.bundle import build_agent
from runners.protocol import PREFIX


def add_routes(app: web.Application) -> None:
    """One file; it holds no secret."""
    app.router.add_get(f"{PREFIX}/agent.pyz", serve)


async def serve(_: web.Request) -> web.Response:
    """The zip that `python3 agent.pyz` runs."""
    return web.Response(body=await asyncio.to_thread(build_agent), content_type="application/zip")
