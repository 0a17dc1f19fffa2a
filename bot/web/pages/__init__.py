"""The pages: one file each with its routes, found by listing this folder."""

from importlib import import_module
from pkgutil import iter_modules

from aiohttp import web


def add_routes(app: web.Application) -> None:
    """Routes of every page."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}").add_routes(app)
