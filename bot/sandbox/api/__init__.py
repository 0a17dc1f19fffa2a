"""The REST API. Each module registers its calls; `build` makes one application of them."""

from aiohttp import web

from bot.sandbox.api import actions, apps, checks, issues, pulls, releases, repositories
from bot.sandbox.api.base import answer_errors, no_such_call, orders_of_tests
from bot.sandbox.hub import HUB, Hub

LARGEST_BODY = 4 * 1024 * 1024


def build(hub: Hub) -> web.Application:
    """The API below its prefix."""
    app = web.Application(middlewares=[orders_of_tests, answer_errors], client_max_size=LARGEST_BODY)
    app[HUB] = hub
    for module in (apps, issues, pulls, checks, actions, releases, repositories):
        module.ROUTES.add_to(app)
    app.router.add_route("*", "/{path:.*}", no_such_call)
    return app
