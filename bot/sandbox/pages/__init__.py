"""Pages of the local GitHub for the browser."""

from aiohttp import web


def add_routes(app: web.Application) -> None:
    """The pages."""
