"""How things look: Markdown as GitHub shows it, times, and the page around everything."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import nh3
from aiohttp import web
from markdown_it import MarkdownIt
from markupsafe import Markup

from bot.sandbox.hub import Hub
from bot.sandbox.state import Account, Repository
from templates import load, read_text

SIGNS = {
    "eyes": "👀",
    "rocket": "🚀",
    "confused": "😕",
    "+1": "👍",
    "-1": "👎",
    "heart": "❤️",
    "laugh": "😄",
    "hooray": "🎉",
}
COOKIE = "acting_as"
_MARKDOWN = MarkdownIt("commonmark", {"html": True, "breaks": True}).enable(["table", "strikethrough"])
_TAGS = nh3.ALLOWED_TAGS | {"details", "summary", "input"}
_ATTRIBUTES = {"a": {"href", "title"}, "img": {"src", "alt", "width", "height"}, "th": {"align"}, "td": {"align"}}


def markdown(text: str) -> Markup:
    """HTML of a comment with everything taken out that GitHub would take out: scripts, styles, odd addresses."""
    html = _MARKDOWN.render(text).replace('style="text-align:right"', 'align="right"')
    clean = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https"}, link_rel="noopener")
    return Markup(clean)


def when(seconds: float) -> str:
    """A time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%d %b %Y, %H:%M:%S UTC")


def people(hub: Hub, repository: Repository) -> list[tuple[str, str]]:
    """Logins that may be acted as, with their right on the repository."""
    users = [account for account in hub.state.accounts.values() if account.kind == "User"]
    return [(account.login, repository.right(account)) for account in users]


def acting(hub: Hub, request: web.Request, form: Mapping[str, Any] | None = None) -> Account:
    """Who acts: as the form says, else as last time. Raises Problem 404 for somebody unknown."""
    login = str((form or {}).get("who") or request.cookies.get(COOKIE) or "")
    return hub.state.account(login)


def page(hub: Hub, request: web.Request, name: str, context: Mapping[str, Any], *, status: int = 200) -> web.Response:
    """One page of `templates/pages/sandbox`."""
    tools = {"markdown": markdown, "when": when, "signs": SIGNS, "me": request.cookies.get(COOKIE, "")}
    text = load("pages/sandbox", name).render({**tools, **context})
    return web.Response(status=status, text=text, content_type="text/html")


async def script(_: web.Request) -> web.Response:
    """The one script: keeps the conversation fresh."""
    return web.Response(text=read_text("pages", "sandbox/fresh.js"), content_type="text/javascript")
