"""One pull request: its conversation in order of time, its check runs, and the forms to take part."""

import hashlib
import secrets
import shlex
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.sandbox import bare
from bot.sandbox.hub import HUB, Hub
from bot.sandbox.pages.forms import Asked, perform
from bot.sandbox.pages.repositories import repository_of
from bot.sandbox.pages.view import COOKIE, actor, differences, form_of, page, people
from bot.sandbox.state import Account, CheckRun, Problem, Pull, Repository, Token, pull_of

BASE = "/{owner}/{name}/pull/{number:[0-9]{1,9}}"


def add_routes(app: web.Application) -> None:
    """The page, its changing part, the changes it proposes, and what its forms send."""
    app.router.add_get(BASE, show)
    app.router.add_get(BASE + "/timeline", show_timeline)
    app.router.add_get(BASE + "/files", show_files)
    app.router.add_post(BASE, act)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing in the conversation; `kind` is comment, review or happening."""

    at: float
    kind: str
    what: Any


def _timeline(pull: Pull) -> list[Entry]:
    entries = [Entry(at=comment.created_at, kind="comment", what=comment) for comment in pull.comments]
    entries += [Entry(at=review.submitted_at, kind="review", what=review) for review in pull.reviews]
    entries += [Entry(at=at, kind="happening", what=sentence) for at, sentence in pull.happenings]
    return sorted(entries, key=lambda entry: entry.at)


def _checks(repository: Repository, pull: Pull) -> list[CheckRun]:
    """The newest check run of each name on the head."""
    newest: dict[tuple[int, str], CheckRun] = {}
    for check in repository.checks:
        if check.head_sha == pull.head_sha:
            newest[check.app.id, check.fields["name"]] = check
    return list(newest.values())


def _place(request: web.Request) -> tuple[Hub, Repository, Pull]:
    hub = request.app[HUB]
    repository = repository_of(hub, request)
    return hub, repository, pull_of(repository, int(request.match_info["number"]))


def _context(hub: Hub, repository: Repository, pull: Pull) -> dict[str, Any]:
    return {
        "repository": repository,
        "pull": pull,
        "timeline": _timeline(pull),
        "checks": _checks(repository, pull),
        "people": people(hub, repository, pull.author),
        "trouble": "",
        "sent": {},
    }


async def show(request: web.Request) -> web.Response:
    """The whole page."""
    return _whole(request)


def _whole(request: web.Request, *, status: int = 200, **more: Any) -> web.Response:
    hub, repository, pull = _place(request)
    context = {**_context(hub, repository, pull), "pushers": _pushers(hub, pull)}
    return page(hub, request, "pull.html", context | more, status=status)


async def show_timeline(request: web.Request) -> web.Response:
    """The parts that change by themselves; 304 for whoever has them already."""
    hub, repository, pull = _place(request)
    response = page(hub, request, "live.html", _context(hub, repository, pull))
    tag = hashlib.sha256(str(response.text).encode()).hexdigest()[:32]
    if any(known.value == tag for known in request.if_none_match or ()):
        return web.Response(status=304, headers={"ETag": f'"{tag}"'})
    response.etag = tag
    return response


async def show_files(request: web.Request) -> web.Response:
    """What the pull request changes, from where it left its base."""
    hub, repository, pull = _place(request)
    base = await bare.merge_base(repository.folder, pull.base_sha, pull.head_sha) or pull.base_sha
    files, left_out = differences(await bare.patch(repository.folder, base, pull.head_sha))
    context = {"repository": repository, "pull": pull, "files": files, "left_out": left_out}
    return page(hub, request, "files.html", context)


async def act(request: web.Request) -> web.StreamResponse:
    """What a form asks for, then back to where it shows; or the page with what is wrong and what was typed."""
    hub, repository, pull = _place(request)
    form = await form_of(request)
    login = form.get("who") or request.cookies.get(COOKIE, "")
    try:
        who = actor(hub, repository, login)
        anchor = await perform(Asked(hub=hub, repository=repository, pull=pull, who=who, form=form))
    except Problem as problem:
        response = _whole(request, status=problem.status, trouble=problem, sent=form, me=login)
        if login.lower() in hub.state.accounts:
            _remember(response, login)
        return response
    back = web.Response(status=303, headers={"Location": f"/{repository.full_name}/pull/{pull.number}#{anchor}"})
    _remember(back, who.login)
    return back


def _remember(response: web.Response, login: str) -> None:
    response.set_cookie(COOKIE, login, samesite="Strict", httponly=True)


# ---- pushing --------------------------------------------------------------------------------------------------------


def _pushers(hub: Hub, pull: Pull) -> list[tuple[str, list[str]]]:
    """Who may push to the branch, its author first, each with what to type."""
    source = pull.head_repository
    if source is None or not pull.open:
        return []
    users = [account for account in hub.state.accounts.values() if account.kind == "User"]
    able = sorted((each for each in users if source.allows(each, "write")), key=lambda each: each is not pull.author)
    return [(each.login, _push_lines(hub, source, pull.head_ref, each)) for each in able]


def _push_lines(hub: Hub, source: Repository, branch: str, who: Account) -> list[str]:
    # a branch of a fork is named by a stranger: quoted, it cannot bring a command of its own
    address = f"http://{who.login}:{_token(hub, who)}@{hub.state.origin.partition('//')[2]}/{source.full_name}.git"
    named = " ".join(
        f"-c {shlex.quote(word)}" for word in (f"user.name={who.login}", f"user.email={who.login}@localhost")
    )
    return [
        f"git clone --branch={shlex.quote(branch)} {shlex.quote(address)}",
        f"cd {shlex.quote(source.name)}",
        f"git {named} commit --allow-empty -m 'Try again'",
        "git push",
    ]


def _token(hub: Hub, who: Account) -> str:
    """The personal token of an account; a new one when it has none."""
    for text, token in hub.state.tokens.items():
        if token.account is who and token.installation is None and token.until is None:
            return text
    text = f"ghp_{secrets.token_hex(18)}"
    hub.state.tokens[text] = Token(account=who)
    return text
