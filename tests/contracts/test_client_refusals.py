"""Bad days: every method of our client, and every way in which GitHub may refuse it."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import gidgethub
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.github.client import Denied, GitHub, Gone
from tests.contracts.conftest import CHECK, REPOSITORY, SHA, WHERE, Vendor


async def _all(found: AsyncIterator[Any]) -> None:
    async for _ in found:
        pass


async def _ask(github: GitHub) -> Any:
    github._installations["o/r"] = 5
    return await github.ask("GET", "o/r", "/actions/runs/7/jobs", {})


async def _find_issue(github: GitHub) -> Any:
    github._login = "octoapp[bot]"
    return await github.find_issue(WHERE, "m")


ISSUE = {"title": "x", "body": "m"}
# one call of each method, and the path that it asks
Step = Callable[[GitHub], Awaitable[Any]]
EVERY: dict[str, tuple[str, str, Step]] = {
    "permission": ("GET", "/collaborators/maya/permission", lambda g: g.permission(WHERE, "maya")),
    "pull": ("GET", "/pulls/8", lambda g: g.pull(WHERE, 8)),
    "compare": ("GET", "/compare/a...b", lambda g: g.compare(WHERE, "a", "b")),
    "commit": ("GET", "/commits/main", lambda g: g.commit(WHERE, "main")),
    "commit_of": ("GET", "/repos/o/r/commits/main", lambda g: g.commit_of("o/r", "main", WHERE)),
    "branch": ("GET", "/branches/main", lambda g: g.branch(WHERE, "main")),
    "commits": ("GET", "/commits", lambda g: _all(g.commits(WHERE, "main"))),
    "pull_of_commit": ("GET", f"/commits/{SHA}/pulls", lambda g: g.pull_of_commit(WHERE, SHA)),
    "latest_release": ("GET", "/releases/latest", lambda g: g.latest_release(WHERE)),
    "file": ("GET", "/contents/a.yml", lambda g: g.file(WHERE, "a.yml", SHA)),
    "changed_files": ("GET", "/pulls/8/files", lambda g: g.changed_files(WHERE, 8)),
    "pulls_with_head": ("GET", f"/commits/{SHA}/pulls", lambda g: g.pulls_with_head(WHERE, SHA)),
    "repository": ("GET", "", lambda g: g.repository(WHERE)),
    "react": ("POST", "/issues/comments/3/reactions", lambda g: g.react(WHERE, 3, "eyes")),
    "create_comment": ("POST", "/issues/8/comments", lambda g: g.create_comment(WHERE, 8, "x")),
    "update_comment": ("PATCH", "/issues/comments/3", lambda g: g.update_comment(WHERE, 3, "x")),
    "find_comment": ("GET", "/issues/8/comments", lambda g: g.find_comment(WHERE, 8, "m", "2026-01-01T00:00:00Z")),
    "create_issue": ("POST", "/issues", lambda g: g.create_issue(WHERE, ISSUE)),
    "update_issue": ("PATCH", "/issues/8", lambda g: g.update_issue(WHERE, 8, ISSUE)),
    "find_issue": ("GET", "/issues", _find_issue),
    "create_check": ("POST", "/check-runs", lambda g: g.create_check(WHERE, CHECK)),
    "update_check": ("PATCH", "/check-runs/3", lambda g: g.update_check(WHERE, 3, CHECK)),
    "find_check": ("GET", f"/commits/{SHA}/check-runs", lambda g: g.find_check(WHERE, SHA, "n", "r1")),
    "app": ("GET", "/app", lambda g: g.app()),
    "hook": ("GET", "/app/hook/config", lambda g: g.hook()),
    "installations": ("GET", "/app/installations", lambda g: _all(g.installations())),
    "deliveries": ("GET", "/app/hook/deliveries", lambda g: _all(g.deliveries())),
    "redeliver": ("POST", "/app/hook/deliveries/3/attempts", lambda g: g.redeliver(3)),
    "installation_token": ("POST", "/app/installations/9/access_tokens", lambda g: g.installation_token(9)),
    "installation_of": ("GET", "/repos/o/r/installation", lambda g: g.installation_of("o/r")),
    "ask": ("GET", "/repos/o/r/actions/runs/7/jobs", _ask),
}
# None for an answer that may be another one a little later
REFUSALS: list[tuple[int, str, dict[str, str], type[Exception] | None]] = [
    (404, "Not Found", {}, Gone),
    (410, "Issues are disabled for this repo", {}, Gone),
    (401, "Bad credentials", {}, None),
    (403, "Resource not accessible by integration", {"X-RateLimit-Remaining": "4999"}, Denied),
    (403, "API rate limit exceeded", {"X-RateLimit-Remaining": "0"}, None),
    (403, "You have exceeded a secondary rate limit.", {"X-RateLimit-Remaining": "4999"}, None),
    (403, "Slow down", {"Retry-After": "60"}, None),
    (429, "Too many requests", {}, None),
    (422, "Validation Failed", {}, None),
    (502, "Server Error", {}, None),
]


def test_every_method_is_listed() -> None:
    public = {name for name, each in vars(GitHub).items() if inspect.isfunction(each) and not name.startswith("_")}
    assert set(EVERY) == public


@pytest.mark.parametrize("name", EVERY)
async def test_what_passes_is_told_from_what_stays(vendor: Vendor, name: str) -> None:
    method, path, call = EVERY[name]
    path = path if path.startswith(("/app", "/repos/")) else REPOSITORY + path
    for status, message, more, expected in REFUSALS:
        headers = {"X-RateLimit-Limit": "5000", "X-RateLimit-Reset": "1", "X-RateLimit-Remaining": "1"} | more
        body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
        vendor.answers.pop((method, path), None)
        vendor.put(method, path, body, status, headers)
        if expected is Gone and name in ("permission", "file"):
            assert await call(vendor.github) == {"permission": "none", "file": None}[name]
            continue
        with pytest.raises(expected or gidgethub.GitHubException):
            await call(vendor.github)


async def test_a_token_that_is_refused_is_not_used_again(vendor: Vendor) -> None:
    """Revoked before its time: the next call asks for a new one."""
    asked = f"/app/installations/{WHERE.installation_id}/access_tokens"
    refused = {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest", "status": "401"}
    vendor.put("GET", f"{REPOSITORY}/pulls/8/files", refused, 401)
    for _ in range(2):
        with pytest.raises(gidgethub.GitHubException):
            await vendor.github.changed_files(WHERE, 8)
    assert [call.path for call in vendor.calls].count(asked) == 2


async def test_a_moved_repository_is_followed_with_the_same_method(vendor: Vendor) -> None:
    moved = {"message": "Moved Permanently", "url": "x", "documentation_url": "https://docs.github.com/rest"}
    there = f"{vendor.api_url}/repositories/8/issues/8/comments"
    vendor.put("POST", f"{REPOSITORY}/issues/8/comments", moved, 307, {"Location": there})
    vendor.show("POST", "/repositories/8/issues/8/comments", 201)
    assert await vendor.github.create_comment(WHERE, 8, "Hello.") == 1
    assert await vendor.calls[-1].json() == {"body": "Hello."}


async def test_a_token_is_sent_to_no_other_server(vendor: Vendor) -> None:
    foreign: list[web.Request] = []

    async def catch(request: web.Request) -> web.Response:
        foreign.append(request)
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", catch)
    moved = {"message": "Moved", "url": "x", "documentation_url": "https://docs.github.com/rest"}
    async with TestServer(app) as server:
        vendor.put("GET", f"{REPOSITORY}/pulls/8", moved, 302, {"Location": str(server.make_url("/pulls/8"))})
        with pytest.raises(gidgethub.RedirectionException):
            await vendor.github.pull(WHERE, 8)
    assert foreign == []
    vendor.forgive("-> 302: GitHub describes no such status")
