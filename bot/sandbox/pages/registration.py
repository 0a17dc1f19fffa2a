"""GitHub's manifest flow: a server sends what its App needs, a person confirms, the server gets the credentials."""

import json
import secrets
from typing import Any
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from bot.sandbox.hub import HUB, Hub
from bot.sandbox.pages.view import page
from bot.sandbox.registering import Registration, register
from bot.sandbox.state import Installation, Problem, not_found


def add_routes(app: web.Application) -> None:
    """Register, confirm, install."""
    app.router.add_post("/settings/apps/new", ask)
    app.router.add_post("/organizations/{owner}/settings/apps/new", ask)
    app.router.add_post("/settings/apps/confirm", confirm)
    app.router.add_get("/apps/{slug}/installations/new", choose)
    app.router.add_post("/apps/{slug}/installations/new", install)


def _manifest(text: str) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except ValueError:
        raise Problem(422, "The manifest is not JSON.") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("name"), str):
        raise Problem(422, "The manifest has no name.")
    for name in ("redirect_url", "url"):
        if urlsplit(str(manifest.get(name, ""))).scheme not in ("http", "https"):
            raise Problem(422, f"The manifest's {name} is no address.")
    return manifest


async def ask(request: web.Request) -> web.Response:
    """What the App wants, for a person to confirm."""
    form = await request.post()
    text = str(form.get("manifest", ""))
    context = {
        "manifest": _manifest(text),
        "text": text,
        "state": request.query.get("state", ""),
        "owner": request.match_info.get("owner", ""),
    }
    return page(request.app[HUB], request, "register.html", context)


async def confirm(request: web.Request) -> web.StreamResponse:
    """Registered; back to the server with a code that it can exchange once."""
    hub = request.app[HUB]
    form = await request.post()
    manifest = _manifest(str(form.get("manifest", "")))
    users = [account.login for account in hub.state.accounts.values() if account.kind != "Bot"]
    owner = str(form.get("owner") or (users[0] if users else "local"))
    hook = manifest.get("hook_attributes") or {}
    told = Registration(
        name=manifest["name"],
        permissions=dict(manifest.get("default_permissions") or {}),
        events=tuple(manifest.get("default_events") or ()),
        webhook_url=str(hook.get("url", "")) if hook.get("active", True) else "",
    )
    code = secrets.token_hex(20)
    hub.state.manifests[code] = register(hub.state, owner, told)
    joint = "&" if "?" in manifest["redirect_url"] else "?"
    query = urlencode({"code": code, "state": str(form.get("state", ""))})
    raise web.HTTPSeeOther(f"{manifest['redirect_url']}{joint}{query}")


def _app(hub: Hub, request: web.Request) -> Any:
    for app in hub.state.apps.values():
        if app.slug == request.match_info["slug"]:
            return app
    raise not_found()


async def choose(request: web.Request) -> web.Response:
    """Where the App may be installed."""
    hub = request.app[HUB]
    owners = sorted({repository.owner.login for repository in hub.state.repositories.values()})
    return page(hub, request, "install.html", {"app": _app(hub, request), "owners": owners, "done": ""})


async def install(request: web.Request) -> web.Response:
    """Installed on all repositories of one account."""
    hub = request.app[HUB]
    app, form = _app(hub, request), await request.post()
    account = hub.state.account(str(form.get("owner", "")))
    known = [each for each in hub.state.installations.values() if each.app is app and each.account is account]
    if not known:
        made = Installation(id=hub.state.new_id(), app=app, account=account, created_at=hub.state.clock())
        hub.state.installations[made.id] = made
    return page(hub, request, "install.html", {"app": app, "owners": [], "done": account.login})
