"""GitHub's manifest flow: a server sends what its App needs, a person confirms, the server gets the credentials."""

import json
import re
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from bot.sandbox.hub import HUB, Hub
from bot.sandbox.pages.view import form_of, page
from bot.sandbox.registering import Registration, account_of, register, slug_of
from bot.sandbox.state import App, Installation, Problem, not_found

# where somebody goes after installing an App, by the App's id
SETUP_URLS = web.AppKey("setup_urls", dict[int, str])
_LEVELS = ("read", "write", "admin")


def add_routes(app: web.Application) -> None:
    """Register, confirm, install."""
    app[SETUP_URLS] = {}
    app.router.add_post("/settings/apps/new", ask)
    app.router.add_post("/organizations/{owner}/settings/apps/new", ask)
    app.router.add_post("/settings/apps/confirm", confirm)
    app.router.add_get("/apps/{slug}/installations/new", choose)
    app.router.add_post("/apps/{slug}/installations/new", install)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What an App asks for, checked: addresses are http or https, `setup_url` may be empty."""

    name: str
    description: str
    redirect_url: str
    setup_url: str
    webhook_url: str
    permissions: dict[str, str]
    events: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> "Manifest":
        """From JSON. Raises Problem 422 with what is wrong."""
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            raise Problem(422, "The manifest is not JSON.") from None
        if not isinstance(told, dict):
            raise Problem(422, "The manifest is not a JSON object.")
        _address(told, "url")
        hook = told.get("hook_attributes") or {}
        permissions, events = told.get("default_permissions") or {}, told.get("default_events") or []
        if not isinstance(hook, dict):
            raise Problem(422, "The manifest's hook_attributes are not an object.")
        if not isinstance(permissions, dict) or not all(level in _LEVELS for level in permissions.values()):
            raise Problem(422, f"The manifest's default_permissions are not names with {', '.join(_LEVELS)}.")
        if not isinstance(events, list) or not all(isinstance(event, str) for event in events):
            raise Problem(422, "The manifest's default_events are not a list of names.")
        return cls(
            name=_named(told.get("name")),
            description=str(told.get("description") or ""),
            redirect_url=_address(told, "redirect_url"),
            setup_url=_address(told, "setup_url") if told.get("setup_url") else "",
            webhook_url=_address(hook, "url") if hook.get("active", True) and hook.get("url") else "",
            permissions=permissions,
            events=tuple(events),
        )


def _named(name: object) -> str:
    if not isinstance(name, str) or not slug_of(name):
        raise Problem(422, "The manifest has no name with a letter or a digit.")
    if len(name) > 34:
        raise Problem(422, "The App's name is too long (maximum is 34 characters).")
    return name


def _address(told: dict[str, Any], name: str) -> str:
    address = told.get(name)
    try:
        good = isinstance(address, str) and urlsplit(address).scheme in ("http", "https") and urlsplit(address).netloc
    except ValueError:
        good = False
    if not good:
        raise Problem(422, f"The manifest's {name} is no address.")
    return str(address)


async def ask(request: web.Request) -> web.Response:
    """What the App wants, for a person to confirm. Sent from the server's own page, so it changes nothing yet."""
    hub = request.app[HUB]
    text = (await form_of(request)).get("manifest", "")
    context = {
        "manifest": Manifest.read(text),
        "text": text,
        "state": request.query.get("state", ""),
        "organization": request.match_info.get("owner", ""),
        "logins": [account.login for account in hub.state.accounts.values() if account.kind == "User"],
    }
    return page(hub, request, "register.html", context)


async def confirm(request: web.Request) -> web.StreamResponse:
    """Registered; back to the server with a code that it can exchange once."""
    hub = request.app[HUB]
    form = await form_of(request)
    manifest = Manifest.read(form.get("manifest", ""))
    name = _named(form.get("name") or manifest.name)
    if any(app.slug == slug_of(name) for app in hub.state.apps.values()):
        raise Problem(422, f"There is an App called {name} already; choose another name.")
    told = Registration(
        name=name, permissions=manifest.permissions, events=manifest.events, webhook_url=manifest.webhook_url
    )
    code = secrets.token_hex(20)
    app = hub.state.manifests[code] = register(hub.state, _owner(hub, form), told)
    if manifest.setup_url:
        request.app[SETUP_URLS][app.id] = manifest.setup_url
    raise web.HTTPSeeOther(_with(manifest.redirect_url, code=code, state=form.get("state", "")))


def _owner(hub: Hub, form: dict[str, str]) -> str:
    """Whose App it becomes: the organisation of the address, the person who was chosen, or the only one there is."""
    users = [account.login for account in hub.state.accounts.values() if account.kind == "User"]
    login = form.get("organization") or form.get("who") or (users[0] if users else "local")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}", login):
        raise Problem(422, f"{login} is no name of an account.")
    return account_of(hub.state, login, "Organization" if form.get("organization") else "User").login


def _with(address: str, **query: str) -> str:
    """The address with more in its query."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


def _app(hub: Hub, request: web.Request) -> App:
    for app in hub.state.apps.values():
        if app.slug == request.match_info["slug"]:
            return app
    raise not_found()


async def choose(request: web.Request) -> web.Response:
    """Where the App may be installed: wherever there are repositories."""
    hub = request.app[HUB]
    owners = sorted({repository.owner.login for repository in hub.state.repositories.values()})
    return page(hub, request, "install.html", {"app": _app(hub, request), "owners": owners, "done": ""})


async def install(request: web.Request) -> web.StreamResponse:
    """Installed on all repositories of one account, once; then on to the App's own page if it has one."""
    hub = request.app[HUB]
    app, form = _app(hub, request), await form_of(request)
    account = hub.state.account(form.get("owner", ""))
    known = [each for each in hub.state.installations.values() if each.app is app and each.account is account]
    if not known:
        known = [Installation(id=hub.state.new_id(), app=app, account=account, created_at=hub.state.clock())]
        hub.state.installations[known[0].id] = known[0]
    target = request.app[SETUP_URLS].get(app.id)
    if target:
        raise web.HTTPSeeOther(_with(target, installation_id=str(known[0].id), setup_action="install"))
    return page(hub, request, "install.html", {"app": app, "owners": [], "done": account.login})
