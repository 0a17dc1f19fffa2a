"""The page around everything, and small things that pages show: times, who acts, signs, coloured differences."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from markupsafe import Markup, escape

from bot.sandbox.hub import Hub
from bot.sandbox.pages.markdown import markdown
from bot.sandbox.state import Account, CheckRun, Problem, Reaction, Repository, iso
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
LONGEST_DIFFERENCE = 5_000  # lines; what is longer is read with git
_ICONS = {
    "success": ("good", "✓"),
    "failure": ("bad", "✕"),
    "timed_out": ("bad", "✕"),
    "action_required": ("bad", "!"),
    "in_progress": ("wait", "●"),
    "queued": ("wait", "○"),
}


# ---- who acts -------------------------------------------------------------------------------------------------------


def people(hub: Hub, repository: Repository, *more: Account) -> list[tuple[str, str]]:
    """Who may be acted as, with the right of each: everybody who was given one, `more`, and one stranger."""
    users = [account for account in hub.state.accounts.values() if account.kind == "User"]
    named = [each for each in users if each is repository.owner or each.login in repository.rights or each in more]
    strangers = [each for each in users if each not in named]
    return [(each.login, repository.right(each)) for each in named + strangers[:1]]


def actor(hub: Hub, repository: Repository, login: str) -> Account:
    """The person of this login. Raises Problem for somebody who is not one, or may not see the repository."""
    who = hub.state.accounts.get(login.lower())
    if who is None or who.kind != "User":
        raise Problem(404, f"There is nobody here called {login}." if login else "Choose who acts.")
    if not repository.allows(who, "read"):
        raise Problem(403, f"{who.login} may not see this repository.")
    return who


# ---- small things ---------------------------------------------------------------------------------------------------


def when(seconds: float) -> Markup:
    """A time for people, and for machines."""
    text = datetime.fromtimestamp(seconds, UTC).strftime("%-d %b %Y, %H:%M:%S UTC")
    return Markup('<time datetime="{}">{}</time>').format(iso(seconds), text)


def signs(reactions: Iterable[Reaction]) -> list[tuple[str, int, str]]:
    """Every sign once: the sign, how many made it, their names."""
    names: dict[str, list[str]] = {}
    for reaction in reactions:
        names.setdefault(reaction.content, []).append(reaction.author.login)
    return [(SIGNS.get(content, content), len(logins), ", ".join(logins)) for content, logins in names.items()]


def stands(check: CheckRun) -> str:
    """Where a check run stands, in GitHub's word: its conclusion, or its status before there is one."""
    return str(check.fields.get("conclusion") or check.fields["status"])


def icon(check: CheckRun) -> Markup:
    """Where a check run stands, as a sign."""
    kind, sign = _ICONS.get(stands(check), ("quiet", "–"))
    return Markup('<span class="icon {}" aria-hidden="true">{}</span>').format(kind, sign)


def web_link(address: object) -> str:
    """The address if a page may link to it, else nothing."""
    return str(address) if str(address).startswith(("http://", "https://")) else ""


def with_commits(sentence: str, repository: Repository) -> Markup:
    """A sentence in which commits lead to their pages."""

    def link(found: re.Match[str]) -> str:
        return f'<a href="/{escape(repository.full_name)}/commit/{found[0]}"><code>{found[0]}</code></a>'

    return Markup(re.sub(r"\b[0-9a-f]{10,40}\b", link, str(escape(sentence))))


def sentence(problem: Problem) -> str:
    """What went wrong, for a person."""
    said = "; ".join(f"{error.get('field', '')} {error.get('message', '')}".strip() for error in problem.errors)
    # a message may begin with a login, which stays as it is
    text = said[:1].upper() + said[1:] if said else problem.message
    return text + ("" if text.endswith((".", "!", "?")) else ".")


# ---- differences ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What changed in one file: its lines, each with how it is shown (head, place, add, cut or nothing)."""

    path: str
    lines: list[tuple[str, str]]


def differences(patch: str) -> tuple[list[Difference], int]:
    """The files of a patch, and how many of its lines were too many to show."""
    lines = patch.split("\n")[:-1]
    files: list[Difference] = []
    inside = False
    for line in lines[:LONGEST_DIFFERENCE]:
        if line.startswith("diff --git ") or not files:
            inside = False
            files.append(Difference(path=_path(line), lines=[]))
        if line.startswith("@@ "):
            inside, kind = True, "place"
        else:
            kind = {"+": "add", "-": "cut"}.get(line[:1], "") if inside else "head"
        files[-1].lines.append((kind, line))
    return files, max(len(lines) - LONGEST_DIFFERENCE, 0)


def _path(line: str) -> str:
    return line.rpartition(" b/")[2]


# ---- forms and the page ---------------------------------------------------------------------------------------------


async def form_of(request: web.Request) -> dict[str, str]:
    """The fields that were sent. Raises Problem 400 for what no form sends."""
    try:
        return {name: str(value) for name, value in (await request.post()).items()}
    except (ValueError, LookupError):
        raise Problem(400, "This is not what a form of these pages sends.") from None


def page(hub: Hub, request: web.Request, name: str, context: Mapping[str, Any], *, status: int = 200) -> web.Response:
    """One page of `templates/pages/sandbox`."""
    tools = {
        "icon": icon,
        "markdown": markdown,
        "me": request.cookies.get(COOKIE, ""),
        "sentence": sentence,
        "signs": signs,
        "stands": stands,
        "web_link": web_link,
        "when": when,
        "with_commits": with_commits,
    }
    text = load("pages/sandbox", name).render({**tools, **context})
    return web.Response(status=status, text=text, content_type="text/html")


async def script(_: web.Request) -> web.Response:
    """The one script: keeps the conversation fresh."""
    return web.Response(text=read_text("pages", "sandbox/fresh.js"), content_type="text/javascript")


async def look(_: web.Request) -> web.Response:
    """The one style sheet."""
    return web.Response(text=read_text("pages", "sandbox/look.css"), content_type="text/css")
