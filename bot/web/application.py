"""The web application: what is served where, and what every answer carries."""

import logging
from importlib import resources
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.artifacts.base import BucketAway
from bot.report.page import render_error
from bot.services import Services
from bot.web import (
    agent_api,
    agent_files,
    agent_members,
    bundle,
    curves,
    files,
    health,
    hosts_api,
    live,
    pages,
    source,
    tensorboard,
    webhook,
)
from bot.web.access import folders_of_request, folders_of_run
from bot.web.keys import SERVICES, WAKE

log = logging.getLogger("benchbot.web")

POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


def build(services: Services) -> web.Application:
    """All routes over the services. The webhook and what only GitHub needs are left out where there is no GitHub."""
    app = web.Application(middlewares=[_guard], client_max_size=webhook.MAX_BODY + 1024)
    app[SERVICES] = services
    app[WAKE] = services.wake
    if services.github is not None:
        webhook.add_routes(app)
        source.add_routes(app)
    for part in (agent_api, agent_files, agent_members, hosts_api, bundle, curves, live, files, health, pages):
        part.add_routes(app)
    tensorboard.add_routes(app, "/requests", folders_of_request)
    tensorboard.add_routes(app, "/runs", folders_of_run)
    app.router.add_static("/static", Path(str(resources.files("bot.web") / "static")))
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors become answers without tracebacks, with a reference where it was our fault."""
    try:
        response = await handler(request)
    except web.HTTPException as stop:
        if stop.status < 400 or not _reads_pages(request):
            raise
        response = _error_page(stop.status, stop.text or stop.reason)
    except (ConnectionResetError, TimeoutError):
        raise
    except BucketAway as away:
        log.warning("%s %s: %s", request.method, request.path, away)
        sentence = "The bucket with these files cannot be reached now. Try again in a minute."
        response = _error_page(503, sentence) if _reads_pages(request) else web.Response(status=503, text=sentence)
    except Exception as error:
        log.exception("%s %s failed", request.method, request.path)
        reference = await request.app[SERVICES].incident(f"{request.method} {request.path}", error)
        sentence = f"Something went wrong here. The operator finds it under the reference {reference}."
        response = (
            _error_page(500, sentence) if _reads_pages(request) else web.json_response({"error": sentence}, status=500)
        )
    if not response.prepared:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        response.headers.setdefault("Referrer-Policy", "no-referrer")
    return response


def _reads_pages(request: web.Request) -> bool:
    return request.method == "GET" and "text/html" in request.headers.get("Accept", "")


def _error_page(status: int, sentence: str) -> web.Response:
    return web.Response(status=status, text=render_error(status, sentence), content_type="text/html")
