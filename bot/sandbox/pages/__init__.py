"""Pages of the local GitHub for the browser: read a pull request, type into it, press its buttons.

Whoever opens them may act as anybody: they are for one visitor on the same machine. Posts from other sites and calls
under another host name are refused.
"""

from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.sandbox.hub import HUB, Hub
from bot.sandbox.pages import pulls, registration, repositories
from bot.sandbox.pages.view import page
from bot.sandbox.shapes import API
from bot.sandbox.state import Moved, Problem

LARGEST_PUSH = 1024**3
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src http: https: data:; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def build(hub: Hub) -> web.Application:
    """The application that the API and git are added to; what guards the pages lets those two pass."""
    app = web.Application(middlewares=[_guard], client_max_size=LARGEST_PUSH)
    app[HUB] = hub
    for module in (registration, repositories, pulls):
        module.add_routes(app)
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path.startswith(f"{API}/") or ".git/" in request.path:
        return await handler(request)
    if _hostname(request) not in LOOPBACK:
        return web.Response(status=421, text="This is served on loopback only.\n")
    if request.method == "POST" and not _same_site(request):
        return web.Response(status=403, text="This form was sent from another site.\n")
    response = await _answer(request, handler)
    if not response.prepared:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers.setdefault("Cache-Control", "no-cache")
    return response


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What the handler says; a refusal and an address without a page become a page with a sentence."""
    try:
        return await handler(request)
    except Moved as moved:
        # the first two parts of the path are the old name
        address = "/".join(["", moved.repository.full_name, *request.rel_url.raw_path.split("/")[3:]])
        return web.Response(status=301 if request.method == "GET" else 307, headers={"Location": address})
    except Problem as problem:
        refused = problem
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as missing:
        refused = Problem(missing.status, missing.reason)
    return page(request.app[HUB], request, "error.html", {"problem": refused}, status=refused.status)


def _hostname(request: web.Request) -> str | None:
    try:
        return urlsplit(f"//{request.host}").hostname
    except ValueError:
        return None


def _same_site(request: web.Request) -> bool:
    """A browser says where a form came from; the first step of registering an App is meant to come from elsewhere."""
    if request.path.endswith("/settings/apps/new"):
        return True
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    return site in ("same-origin", "none") and origin in (None, f"http://{request.host}")
