"""Typed keys under which the web application keeps its parts."""

from collections.abc import Callable

from aiohttp import web

from bot.services import Services

SERVICES = web.AppKey("services", Services)
WAKE = web.AppKey[Callable[[], None]]("wake")
