"""Repositories, their pull requests, commits, check runs, and faces."""

import re

from aiohttp import web
from markupsafe import escape

from bot.sandbox import bare
from bot.sandbox.hub import HUB, Hub
from bot.sandbox.pages.view import differences, look, page, script
from bot.sandbox.state import Repository, not_found

_COLOURS = ("#7a5195", "#2f6bb8", "#1a7f37", "#a84b14", "#00706f", "#a3386c")
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git knows it without having it: before a first commit


def add_routes(app: web.Application) -> None:
    """What can only be read."""
    app.router.add_get("/", show_all)
    app.router.add_get("/fresh.js", script)
    app.router.add_get("/look.css", look)
    app.router.add_get("/avatars/{id}", face)
    app.router.add_get("/{owner}/{name}", show_pulls)
    app.router.add_get("/{owner}/{name}/pulls", show_pulls)
    app.router.add_get("/{owner}/{name}/commit/{sha}", show_commit)
    app.router.add_get("/{owner}/{name}/runs/{id}", show_check)


def repository_of(hub: Hub, request: web.Request) -> Repository:
    """The repository of a page. Raises Problem 404."""
    return hub.state.repository(f"{request.match_info['owner']}/{request.match_info['name']}")


async def show_all(request: web.Request) -> web.Response:
    """All repositories."""
    hub = request.app[HUB]
    return page(hub, request, "repositories.html", {"repositories": list(hub.state.repositories.values())})


async def show_pulls(request: web.Request) -> web.Response:
    """The pull requests of one repository, newest first."""
    hub = request.app[HUB]
    repository = repository_of(hub, request)
    pulls = sorted(repository.pulls.values(), key=lambda pull: -pull.number)
    clone = f"{hub.state.origin}/{repository.full_name}.git"
    return page(hub, request, "pulls.html", {"repository": repository, "pulls": pulls, "clone": clone})


async def show_commit(request: web.Request) -> web.Response:
    """One commit and what it changed against its first parent."""
    hub = request.app[HUB]
    repository = repository_of(hub, request)
    sha = request.match_info["sha"]
    if not re.fullmatch("[0-9a-f]{4,40}", sha):
        raise not_found()
    commit = await bare.commit(repository.folder, await bare.resolve(repository.folder, sha))
    before = commit.parents[0] if commit.parents else _EMPTY_TREE
    files, left_out = differences(await bare.patch(repository.folder, before, commit.sha))
    context = {"repository": repository, "commit": commit, "files": files, "left_out": left_out}
    return page(hub, request, "commit.html", context)


async def show_check(request: web.Request) -> web.Response:
    """What an App says of one check run."""
    hub = request.app[HUB]
    repository = repository_of(hub, request)
    for check in repository.checks:
        if str(check.id) == request.match_info["id"]:
            pulls = [pull for pull in repository.pulls.values() if pull.head_sha == check.head_sha]
            return page(hub, request, "check.html", {"repository": repository, "check": check, "pulls": pulls})
    raise not_found()


async def face(request: web.Request) -> web.Response:
    """Initials on a colour, in place of a photograph."""
    hub = request.app[HUB]
    for account in hub.state.accounts.values():
        if str(account.id) == request.match_info["id"]:
            colour, letter = _COLOURS[account.id % len(_COLOURS)], escape(account.login[:1].upper())
            text = (
                '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40">'
                f'<rect width="40" height="40" rx="20" fill="{colour}"/><text x="20" y="27" fill="#fff" font-size="20" '
                f'text-anchor="middle" font-family="sans-serif">{letter}</text></svg>'
            )
            return web.Response(text=text, content_type="image/svg+xml")
    raise not_found()
