"""One pull request: its conversation in order of time, its check runs, and the forms to take part."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.sandbox import bare
from bot.sandbox.hub import HUB, Hub
from bot.sandbox.pages.repositories import repository_of
from bot.sandbox.pages.view import COOKIE, acting, page, people
from bot.sandbox.state import Account, CheckRun, Problem, Pull, Repository, Token, comment_of, not_found, pull_of

BASE = "/{owner}/{name}/pull/{number:\\d+}"


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
    newest: dict[tuple[int, str], CheckRun] = {}
    for check in repository.checks:
        if check.head_sha == pull.head_sha:
            newest[check.app.id, check.fields["name"]] = check
    return list(newest.values())


def _context(hub: Hub, request: web.Request) -> dict[str, Any]:
    repository = repository_of(hub, request)
    pull = pull_of(repository, int(request.match_info["number"]))
    return {
        "repository": repository,
        "pull": pull,
        "timeline": _timeline(pull),
        "checks": _checks(repository, pull),
        "people": people(hub, repository),
    }


async def show(request: web.Request) -> web.Response:
    """The whole page."""
    hub = request.app[HUB]
    context = _context(hub, request)
    context["push"] = _push_lines(hub, context["repository"], context["pull"])
    return page(hub, request, "pull.html", context)


async def show_timeline(request: web.Request) -> web.Response:
    """The part that changes by itself."""
    hub = request.app[HUB]
    return page(hub, request, "timeline.html", _context(hub, request))


async def show_files(request: web.Request) -> web.Response:
    """What the pull request changes."""
    hub = request.app[HUB]
    context = _context(hub, request)
    repository, pull = context["repository"], context["pull"]
    base = await bare.merge_base(repository.folder, pull.base_sha, pull.head_sha) or pull.base_sha
    lines = (await bare.patch(repository.folder, base, pull.head_sha)).splitlines()
    return page(hub, request, "files.html", {**context, "lines": lines})


async def act(request: web.Request) -> web.StreamResponse:
    """What a form asks for; then back to the page."""
    hub = request.app[HUB]
    repository = repository_of(hub, request)
    pull = pull_of(repository, int(request.match_info["number"]))
    form = dict(await request.post())
    who = acting(hub, request, form)
    do = _ACTS.get(str(form.get("act")))
    if do is None:
        raise not_found()
    await do(hub, repository, pull, who, {name: str(value) for name, value in form.items()})
    back = web.HTTPSeeOther(f"/{repository.full_name}/pull/{pull.number}#end")
    back.set_cookie(COOKIE, who.login, samesite="Strict", httponly=True)
    raise back


Act = Callable[[Hub, Repository, Pull, Account, dict[str, str]], Awaitable[None]]


async def _comment(hub: Hub, repository: Repository, pull: Pull, who: Account, form: dict[str, str]) -> None:
    hub.acts.comment(repository, pull.number, who, form.get("body", ""))


async def _edit(hub: Hub, repository: Repository, pull: Pull, who: Account, form: dict[str, str]) -> None:
    found, comment = comment_of(repository, int(form.get("comment", "0")))
    hub.acts.edit(repository, found, comment, who, form.get("body", ""))


async def _review(hub: Hub, repository: Repository, pull: Pull, who: Account, form: dict[str, str]) -> None:
    hub.acts.review(repository, pull.number, who, form.get("event", ""), form.get("body", ""))


async def _close(hub: Hub, repository: Repository, pull: Pull, who: Account, form: dict[str, str]) -> None:
    if pull.author is not who and not repository.allows(who, "triage"):
        raise Problem(403, f"{who.login} may not close this.")
    if form.get("event") == "reopen":
        await hub.acts.reopen(repository, pull.number, who)
    else:
        await hub.acts.close(repository, pull.number, who, merge=form.get("event") == "merge")


async def _press(hub: Hub, repository: Repository, pull: Pull, who: Account, form: dict[str, str]) -> None:
    for check in repository.checks:
        if str(check.id) == form.get("check"):
            if form.get("button"):
                hub.acts.press(repository, check, who, form["button"])
            else:
                hub.acts.rerequest(repository, check, who)
            return
    raise not_found()


_ACTS: dict[str, Act] = {"comment": _comment, "edit": _edit, "review": _review, "close": _close, "press": _press}


def _push_lines(hub: Hub, repository: Repository, pull: Pull) -> list[str]:
    """What to type to push a commit to the branch, with a token of its author."""
    source = pull.head_repository
    if source is None or not source.allows(pull.author, "write"):
        return []
    known = (text for text, token in hub.state.tokens.items() if token.account is pull.author)
    text = next(known, f"local-token-of-{pull.author.login}")
    hub.state.tokens.setdefault(text, Token(account=pull.author))
    host = hub.state.origin.partition("//")[2]
    return [
        f"git clone --branch {pull.head_ref} http://{pull.author.login}:{text}@{host}/{source.full_name}.git",
        f"cd {source.name}",
        "git commit --allow-empty -m 'Try again'",
        "git push",
    ]
