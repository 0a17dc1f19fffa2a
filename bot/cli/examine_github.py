"""What `benchbot doctor` asks GitHub about its App: credentials, permissions, webhook, installations. Only looks."""

from collections.abc import Mapping
from typing import Any

import gidgethub
import jwt
from aiohttp import ClientError, ClientSession

from bot.cli.manifest import read_manifest
from bot.github.auth import AppKey
from bot.github.client import Denied, GitHub, Gone
from bot.settings import Settings
from runners.backends.base import Finding, Level
from runners.checks import clock

_LEVELS = ("none", "read", "write", "admin")
_DELIVERIES = 30


def _say(about: str, level: Level, sentence: str, advice: str = "") -> Finding:
    return Finding(about=about, level=level, sentence=sentence, advice=advice)


async def examine(settings: Settings, session: ClientSession) -> list[Finding]:
    """All findings; after a fault of the App itself nothing else is asked."""
    if not settings.app_id:
        told = "No GitHub App is set, so no comment is heard."
        advice = (
            "benchbot setup --base-url https://YOUR-SERVER registers one; benchbot demo and benchbot run need none."
        )
        return [_say("App", "warning", told, advice)]
    key = AppKey(settings.app_id, settings.private_key, settings.github_api_url)
    try:
        key.app_token()
    except (ValueError, jwt.PyJWTError) as error:
        advice = "Set github.private_key_file to the .pem file that GitHub gave."
        return [_say("App", "fault", f"The private key cannot be used: {_first_line(error)}", advice)]
    github, found = GitHub(session, key), list[Finding]()
    try:
        app = await github.app()
        page = _page(settings, app)
        found.append(_say("App", "ok", f"{app['name']} ({app['html_url']}) is known to GitHub by its key."))
        found += [*clock("GitHub", github.dated), *_rights(app, page)]
        found.append(_hook(settings, await github.hook(), page))
        found.append(await _deliveries(github, settings, page))
        return [*found, *await _installations(github, app)]
    except (gidgethub.GitHubException, Gone, Denied, ClientError, OSError, ValueError) as error:
        known = found or clock("GitHub", github.dated)
        return [*known, _refused(settings, error, known=bool(found))]


def _refused(settings: Settings, error: Exception, *, known: bool) -> Finding:
    """`known`: GitHub has answered to this key before."""
    url, number = settings.github_api_url, settings.app_id
    unknown = isinstance(error, Gone) or getattr(error, "status_code", 0) == 401
    if unknown and not known:
        told = f"{url} knows no App {number} with this key: {_first_line(error)}"
        advice = (
            f"See the App's id and make a new key on its page ({settings.github_web_url}/settings/apps), "
            "then set github.app_id and github.private_key_file."
        )
        return _say("App", "fault", told, advice)
    told = f"{url} does not answer as it should: {_first_line(error)}"
    return _say("GitHub", "fault", told, "Check the network, and try again.")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _page(settings: Settings, app: Mapping[str, Any]) -> str:
    """Where the App's owner changes it."""
    owner = app.get("owner") or {}
    place = f"/organizations/{owner['login']}" if owner.get("type") == "Organization" else ""
    return f"{settings.github_web_url}{place}/settings/apps/{app.get('slug', '')}"


def _rights(app: Mapping[str, Any], page: str) -> list[Finding]:
    """Permissions and events against app.yml."""
    wanted, given = read_manifest(), app.get("permissions") or {}
    less = _less(given, wanted["default_permissions"])
    more = _less(wanted["default_permissions"], given)
    deaf = sorted(set(wanted["default_events"]) - set(app.get("events") or ()))
    found = []
    if less:
        found.append(_say("permissions", "fault", f"The App lacks {less}.", f"Give it that: {page}/permissions"))
    if more:
        told = f"The App has more than it needs: {more}."
        found.append(_say("permissions", "warning", told, f"Take back what app.yml does not name: {page}/permissions"))
    if deaf:
        told = f"GitHub does not tell the App of {', '.join(deaf)}."
        found.append(_say("events", "fault", told, f"Subscribe to them: {page}/permissions"))
    return found or [_say("permissions", "ok", "Permissions and events are those of app.yml.")]


def _less(given: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """What is wanted and not given, in words."""
    lacking = {name: level for name, level in wanted.items() if _rank(level) > _rank(given.get(name, ""))}
    return ", ".join(f"{name}: {level}" for name, level in sorted(lacking.items()))


def _rank(level: str) -> int:
    return _LEVELS.index(level) if level in _LEVELS else 0


def _hook(settings: Settings, hook: Mapping[str, Any], page: str) -> Finding:
    path = read_manifest()["hook_attributes"]["path"]
    url, expected = str(hook.get("url") or ""), f"{settings.base_url}{path}"
    if not url:
        return _say("webhook", "fault", "It has no address.", f"Set it to {expected}: {page}")
    if not hook.get("secret"):
        told = "It is not signed, and unsigned webhooks are refused."
        return _say("webhook", "fault", told, f"Set the secret of github.webhook_secret: {page}")
    if hook.get("content_type") != "json":
        return _say("webhook", "fault", "It is not sent as JSON.", f"Set its content type to application/json: {page}")
    if url != expected:
        told = f"GitHub sends to {url}, and base_url with {path} is {expected}."
        return _say("webhook", "warning", told, f"Unless a proxy is between them, set base_url, or the address: {page}")
    if str(hook.get("insecure_ssl", "0")) != "0":
        return _say("webhook", "warning", "GitHub does not check the server's certificate.", f"Let it: {page}")
    return _say("webhook", "ok", f"GitHub sends to {url}.")


async def _deliveries(github: GitHub, settings: Settings, page: str) -> Finding:
    """Whether the last ones arrived."""
    codes: list[tuple[str, int, str]] = []
    async for delivery in github.deliveries():
        codes.append((delivery["guid"], int(delivery.get("status_code") or 0), str(delivery.get("status"))))
        if len(codes) == _DELIVERIES:
            break
    if not codes:
        told = "GitHub has sent none yet."
        return _say("deliveries", "ok", told)
    arrived = {guid for guid, code, _ in codes if 200 <= code < 300}
    lost = [(code, status) for guid, code, status in codes if guid not in arrived]
    if not lost:
        return _say("deliveries", "ok", f"All of the last {len(codes)} arrived.")
    code, status = lost[0]
    told = f"{len(lost)} of the last {len(codes)} did not arrive, the newest with: {code or ''} {status}.".replace(
        "  ", " "
    )
    level: Level = "fault" if codes[0][0] not in arrived else "warning"
    if code in (400, 401, 403):
        return _say("deliveries", level, told, f"Make github.webhook_secret and the App's secret equal: {page}")
    if code == 404:
        return _say("deliveries", level, told, f"Let the proxy pass the webhook to {settings.host}:{settings.port}.")
    if level == "warning":
        return _say("deliveries", level, told, f"The start of the bot asks for them again; see them: {page}/advanced")
    return _say("deliveries", level, told, f"Is {settings.base_url} open to the internet? Answers: {page}/advanced")


async def _installations(github: GitHub, app: Mapping[str, Any]) -> list[Finding]:
    """Where the App is installed, and who has not agreed yet to what it asks for now."""
    where, found = [], []
    async for installation in github.installations():
        name = str((installation.get("account") or {}).get("login", ""))
        where.append(name)
        less = _less(installation.get("permissions") or {}, read_manifest()["default_permissions"])
        if installation.get("suspended_at"):
            advice = f"Its owner may lift that: {installation['html_url']}"
            found.append(_say("installations", "warning", f"{name} has suspended the App.", advice))
        elif less:
            advice = f"Its owner accepts them: {installation['html_url']}"
            found.append(_say("installations", "fault", f"{name} has not granted {less}.", advice))
    if not where:
        advice = f"Install it on your repositories: {app['html_url']}/installations/new"
        return [_say("installations", "warning", "The App is installed nowhere.", advice)]
    return found or [_say("installations", "ok", f"The App is installed on {', '.join(where)}.")]
