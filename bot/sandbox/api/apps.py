"""Accounts, and what an App may ask about itself: installations, tokens, deliveries, and its registration."""

import secrets
import time

from aiohttp import web

from bot.sandbox.api.base import Call, Routes
from bot.sandbox.hooks import Delivery, signed
from bot.sandbox.state import App, Problem, Token, iso, not_found

ROUTES = Routes()
TOKEN_S = 3600.0


def _app(call: Call) -> App:
    if call.caller.app is None:
        raise Problem(401, "A JSON web token could not be decoded")
    return call.caller.app


@ROUTES.top("GET", "/user")
async def show_me(call: Call) -> web.StreamResponse:
    """The person who calls."""
    times = dict.fromkeys(("created_at", "updated_at"), iso(0))
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    about = dict.fromkeys(("name", "company", "blog", "location", "email", "hireable", "bio"))
    return web.json_response(call.hub.shapes.user(call.who) | times | counts | about)


@ROUTES.top("GET", "/rate_limit")
async def show_rate_limit(call: Call) -> web.StreamResponse:
    """Nobody is limited here."""
    rate = {"limit": 5000, "remaining": 4999, "reset": int(time.time()) + 3600, "used": 1}
    return web.json_response({"resources": {"core": rate, "search": rate}, "rate": rate})


@ROUTES.top("GET", "/app")
async def show_app(call: Call) -> web.StreamResponse:
    """The App itself."""
    app = _app(call)
    count = sum(each.app is app for each in call.hub.state.installations.values())
    return web.json_response(call.hub.shapes.app(app) | {"installations_count": count})


@ROUTES.top("GET", "/app/installations")
async def list_installations(call: Call) -> web.StreamResponse:
    """Where it is installed."""
    app = _app(call)
    mine = [each for each in call.hub.state.installations.values() if each.app is app]
    return call.page(mine, call.hub.shapes.installation)


@ROUTES.top("POST", "/app/installations/{installation_id}/access_tokens")
async def create_token(call: Call) -> web.StreamResponse:
    """A token of one installation, good for an hour."""
    app, installation = _app(call), call.hub.state.installations.get(call.number("installation_id"))
    if installation is None or installation.app is not app:
        raise not_found()
    text, until = f"ghs_{secrets.token_hex(18)}", time.time() + TOKEN_S
    call.hub.state.tokens[text] = Token(account=app.bot, installation=installation, until=until)
    answer = {
        "token": text,
        "expires_at": iso(until),
        "permissions": dict(app.permissions),
        "repository_selection": "all",
    }
    return web.json_response(answer, status=201)


def _delivery(call: Call) -> Delivery:
    app, wanted = _app(call), call.number("delivery_id")
    for delivery in call.hub.hooks.sent:
        if delivery.id == wanted and delivery.app is app:
            return delivery
    raise not_found()


@ROUTES.top("GET", "/app/hook/config")
async def show_hook(call: Call) -> web.StreamResponse:
    """Where webhooks are sent; the secret is never shown."""
    told = {"url": _app(call).webhook_url, "content_type": "json", "insecure_ssl": "0", "secret": "********"}
    return web.json_response(told)


@ROUTES.top("GET", "/app/hook/deliveries")
async def list_deliveries(call: Call) -> web.StreamResponse:
    """What was sent, newest first."""
    app = _app(call)
    return call.page([each for each in call.hub.hooks.sent if each.app is app], call.hub.hooks.shape)


@ROUTES.top("GET", "/app/hook/deliveries/{delivery_id}")
async def show_delivery(call: Call) -> web.StreamResponse:
    """One delivery with its body."""
    delivery = _delivery(call)
    request = {"headers": signed(delivery), "payload": delivery.payload}
    response = {"headers": {}, "payload": delivery.answer}
    return web.json_response(call.hub.hooks.shape(delivery) | {"request": request, "response": response})


@ROUTES.top("POST", "/app/hook/deliveries/{delivery_id}/attempts")
async def redeliver(call: Call) -> web.StreamResponse:
    """Send it once more."""
    call.hub.hooks.again(_delivery(call))
    return web.json_response({}, status=202)


@ROUTES.top("POST", "/app-manifests/{code}/conversions")
async def convert_manifest(call: Call) -> web.StreamResponse:
    """The credentials of an App that was registered from a manifest; a code is good once."""
    app = call.hub.state.manifests.pop(call.request.match_info["code"], None)
    if app is None:
        raise not_found()
    secret = {"client_secret": secrets.token_hex(20), "webhook_secret": app.webhook_secret, "pem": app.private_key}
    return web.json_response(call.hub.shapes.app(app) | secret, status=201)


@ROUTES.top("GET", "/users/{login}")
async def show_user(call: Call) -> web.StreamResponse:
    """An account by its login."""
    account = call.hub.state.account(call.request.match_info["login"])
    times = dict.fromkeys(("created_at", "updated_at"), iso(0))
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    about = dict.fromkeys(("name", "company", "blog", "location", "email", "hireable", "bio"))
    return web.json_response(call.hub.shapes.user(account) | times | counts | about)
