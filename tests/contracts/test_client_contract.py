"""Every method of our client against a server that judges its calls by GitHub's description and answers with GitHub's
own examples. What the local GitHub may misunderstand in the same way as we do is found here."""

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import gidgethub
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.core.nouns import Person
from bot.github.auth import AppKey
from bot.github.client import Compared, Denied, GitHub, Gone, PullFacts, Where
from tests.contracts.vendor_answers import vendor_answer
from tests.harness.github_contract import RestContract, middleware

REPOSITORY = "/repositories/7"
WHERE = Where(repository_id=7, installation_id=5)
SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
CHECK = {
    "name": "benchbot / all",
    "head_sha": SHA,
    "external_id": "r1",
    "status": "completed",
    "conclusion": "success",
    "output": {"title": "Done", "summary": "All good.", "text": "Nothing more."},
    "actions": [{"label": "Retry", "description": "Measure again.", "identifier": "retry"}],
}


@dataclass
class Vendor:
    """Answers calls with what was put for them; everything else is answered 404, as GitHub does."""

    contract: RestContract
    github: GitHub = field(init=False)
    api_url: str = ""
    answers: dict[tuple[str, str], list[web.Response]] = field(default_factory=dict)
    calls: list[web.Request] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def put(
        self, method: str, path: str, body: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> "Vendor":
        """One answer; several for the same call are given one after the other, the last one for ever."""
        text = None if body is None else json.dumps(body)
        answer = web.Response(status=status, text=text, content_type="application/json", headers=headers)
        self.answers.setdefault((method, path), []).append(answer)
        return self

    def show(self, method: str, path: str, status: int = 200, example: str = "", **changes: Any) -> Any:
        """Put GitHub's example of an answer, with fields changed; returns it."""
        body = vendor_answer(self.contract, method, path, status, example)
        if isinstance(body, dict):
            body |= changes
        self.put(method, path, body, status)
        return body

    async def answer(self, request: web.Request) -> web.Response:
        """The handler of the server."""
        self.calls.append(request)
        waiting = self.answers.get((request.method, request.path), [])
        found = waiting.pop(0) if len(waiting) > 1 else (waiting or [_error("Not Found", 404)])[0]
        return web.Response(status=found.status, body=found.body, headers=found.headers)

    def forgive(self, said: str) -> None:
        """Take back the one violation that was ours, on purpose."""
        assert len(self.violations) == 1
        assert said in self.violations.pop()

    def last(self) -> tuple[str, str, dict[str, str]]:
        """Method, path and query of the last call."""
        call = self.calls[-1]
        return call.method, call.path, dict(call.query)


def _error(message: str, status: int) -> web.Response:
    body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return web.json_response(body, status=status)


@pytest.fixture(scope="module")
def contract() -> RestContract:
    return RestContract()


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*plain).decode()


@pytest.fixture
async def vendor(contract: RestContract, private_key: str) -> AsyncIterator[Vendor]:
    """A server that knows the token of our installation and nothing else yet."""
    made = Vendor(contract)
    app = web.Application(middlewares=[middleware(contract, "", made.violations)])
    app.router.add_route("*", "/{rest:.*}", made.answer)
    async with TestServer(app) as server, ClientSession() as session:
        made.api_url = str(server.make_url("")).rstrip("/")
        made.github = GitHub(session, AppKey(12, private_key, made.api_url))
        made.show("POST", "/app/installations/5/access_tokens", 201, token="ghs_ours")
        yield made
    assert made.violations == [], "\n".join(made.violations)


# ---- facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "plain", "expected"),
    [("maintain", "write", "maintain"), ("triage", "read", "triage"), ("our-own-role", "write", "write")],
)
async def test_permission(vendor: Vendor, role: str, plain: str, expected: str) -> None:
    path = f"{REPOSITORY}/collaborators/maya/permission"
    vendor.show("GET", path, permission=plain, role_name=role)
    assert await vendor.github.permission(WHERE, "maya") == expected


async def test_permission_of_a_stranger(vendor: Vendor) -> None:
    assert await vendor.github.permission(WHERE, "nobody[bot]") == "none"
    assert vendor.last()[1] == f"{REPOSITORY}/collaborators/nobody[bot]/permission"


async def test_pull(vendor: Vendor) -> None:
    vendor.show("GET", f"{REPOSITORY}/pulls/1347")
    assert await vendor.github.pull(WHERE, 1347) == PullFacts(
        number=1347,
        title="Amazing new feature",
        open=True,
        head_sha=SHA,
        head_repository_id=1296269,
        base_ref="master",
        author=Person(id=1, login="octocat", kind="User"),
    )


async def test_pull_of_a_deleted_fork(vendor: Vendor) -> None:
    """GitHub answers so, although its description says that there is always a repository."""
    path = f"{REPOSITORY}/pulls/8"
    answer = vendor_answer(vendor.contract, "GET", path, 200)
    vendor.put("GET", path, {**answer, "head": {**answer["head"], "repo": None}, "state": "closed"})
    seen = await vendor.github.pull(WHERE, 8)
    assert (seen.head_repository_id, seen.open) == (None, False)
    vendor.forgive("head/repo: null")


async def test_compare(vendor: Vendor) -> None:
    vendor.show("GET", f"{REPOSITORY}/compare/main...feature/a#1")
    compared = await vendor.github.compare(WHERE, "main", "feature/a#1")
    assert compared == Compared(base_sha=SHA, merge_base_sha=SHA, paths=("file1.txt",))


@pytest.mark.parametrize("ref", ["heads/main", "heads/feature/50%?#&+ü", SHA[:7]])
async def test_commit(vendor: Vendor, ref: str) -> None:
    vendor.show("GET", f"{REPOSITORY}/commits/{ref}")
    assert await vendor.github.commit(WHERE, ref) == SHA
    vendor.show("GET", f"/repos/octo/scripts/commits/{ref}")
    assert await vendor.github.commit_of("octo/scripts", ref, WHERE) == SHA


async def test_latest_release(vendor: Vendor) -> None:
    vendor.show("GET", f"{REPOSITORY}/releases/latest")
    assert await vendor.github.latest_release(WHERE) == "v1.0.0"


async def test_file(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/contents/a b/c#d.yml"
    vendor.show("GET", path, example="response-if-content-is-a-file", content="dmVyc2lv\nbjogMf8=\n")
    assert await vendor.github.file(WHERE, "a b/c#d.yml", "feature/a+b&c") == "version: 1\ufffd"
    assert vendor.last()[2] == {"ref": "feature/a+b&c"}


@pytest.mark.parametrize("what", ["directory", "symlink", "submodule"])
async def test_what_is_no_file_is_no_text(vendor: Vendor, what: str) -> None:
    vendor.show("GET", f"{REPOSITORY}/contents/x", example=f"response-if-content-is-a-{what}")
    assert await vendor.github.file(WHERE, "x", SHA) is None
    assert await vendor.github.file(WHERE, "missing", SHA) is None


async def test_changed_files_of_two_pages(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/pulls/8/files"
    (first,) = vendor_answer(vendor.contract, "GET", path, 200)
    link = {"Link": f'<{vendor.api_url}{path}?per_page=100&page=2>; rel="next"'}
    vendor.put("GET", path, [first], headers=link).put("GET", path, [{**first, "filename": "b/ü.py"}])
    assert await vendor.github.changed_files(WHERE, 8) == ("file1.txt", "b/ü.py")
    assert vendor.last()[2] == {"per_page": "100", "page": "2"}


async def test_pulls_with_head(vendor: Vendor) -> None:
    (pull,) = vendor_answer(vendor.contract, "GET", f"{REPOSITORY}/commits/{SHA}/pulls", 200)
    others = [{**pull, "state": "closed"}, {**pull, "head": {**pull["head"], "sha": "b" * 40}}]
    vendor.put("GET", f"{REPOSITORY}/commits/{SHA}/pulls", [pull, *others])
    assert await vendor.github.pulls_with_head(WHERE, SHA) == (1347,)


async def test_repository(vendor: Vendor) -> None:
    vendor.show("GET", REPOSITORY)
    seen = await vendor.github.repository(WHERE)
    assert (seen["id"], seen["full_name"], seen["default_branch"]) == (1296269, "octocat/Hello-World", "master")


# ---- what we show ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize("content", ["eyes", "+1", "-1", "confused", "rocket"])
async def test_react(vendor: Vendor, content: str, status: int) -> None:
    vendor.show("POST", f"{REPOSITORY}/issues/comments/3/reactions", status)
    await vendor.github.react(WHERE, 3, content)
    assert await vendor.calls[-1].json() == {"content": content}


async def test_comments(vendor: Vendor) -> None:
    vendor.show("POST", f"{REPOSITORY}/issues/8/comments", 201)
    assert await vendor.github.create_comment(WHERE, 8, "Hello ü.") == 1
    assert await vendor.calls[-1].json() == {"body": "Hello ü."}
    vendor.show("PATCH", f"{REPOSITORY}/issues/comments/1")
    await vendor.github.update_comment(WHERE, 1, "Changed.")
    assert await vendor.calls[-1].json() == {"body": "Changed."}


async def test_our_own_comment_is_found_and_nobody_elses(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/issues/8/comments"
    (comment,) = vendor_answer(vendor.contract, "GET", path, 200)
    check = vendor_answer(vendor.contract, "POST", f"{REPOSITORY}/check-runs", 201)
    ours, theirs = ({**check["app"], "id": number} for number in (12, 13))
    copies = [{**comment, "id": 2, "body": "mark"}, {**comment, "id": 3, "body": "mark"}]
    copies[1]["performed_via_github_app"] = theirs
    other = {**comment, "id": 4, "body": "else", "performed_via_github_app": ours}
    link = {"Link": f'<{vendor.api_url}{path}?page=2>; rel="next"'}
    vendor.put("GET", path, [*copies, other], headers=link)
    vendor.put("GET", path, [{**other, "id": 5, "body": "x mark x"}])
    assert await vendor.github.find_comment(WHERE, 8, "mark", "2026-01-01T00:00:00+00:00") == 5
    assert dict(vendor.calls[-2].query) == {"per_page": "100", "since": "2026-01-01T00:00:00+00:00"}
    assert await vendor.github.find_comment(WHERE, 8, "unknown", "2026-01-01T00:00:00Z") is None


async def test_checks(vendor: Vendor) -> None:
    made = vendor.show("POST", f"{REPOSITORY}/check-runs", 201)
    assert await vendor.github.create_check(WHERE, CHECK) == made["id"]
    assert await vendor.calls[-1].json() == CHECK
    vendor.show("PATCH", f"{REPOSITORY}/check-runs/4")
    await vendor.github.update_check(WHERE, 4, CHECK)
    assert await vendor.calls[-1].json() == {key: value for key, value in CHECK.items() if key != "head_sha"}


async def test_our_check_is_found(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/commits/{SHA}/check-runs"
    answer = vendor_answer(vendor.contract, "GET", path, 200)
    (check,) = answer["check_runs"]
    vendor.put("GET", path, {"total_count": 2, "check_runs": [check, {**check, "id": 9, "external_id": "r1"}]})
    assert await vendor.github.find_check(WHERE, SHA, "benchbot / all", "r1") == 9
    query = {"check_name": "benchbot / all", "app_id": "12", "filter": "all", "per_page": "100"}
    assert vendor.last()[2] == query
    assert await vendor.github.find_check(WHERE, SHA, "benchbot / all", "r2") is None


# ---- the App itself --------------------------------------------------------------------------------------------------


async def test_deliveries(vendor: Vendor) -> None:
    vendor.show("GET", "/app/hook/deliveries")
    assert [each["id"] async for each in vendor.github.deliveries()] == [12345678, 123456789]
    vendor.put("POST", "/app/hook/deliveries/12345678/attempts", {}, 202)
    await vendor.github.redeliver(12345678)
    assert vendor.last()[:2] == ("POST", "/app/hook/deliveries/12345678/attempts")


async def test_a_token_is_fetched_once_and_sent(vendor: Vendor) -> None:
    vendor.show("GET", REPOSITORY)
    await vendor.github.repository(WHERE)
    await vendor.github.repository(WHERE)
    assert await vendor.github.installation_token(5) == "ghs_ours"
    assert [call.path for call in vendor.calls] == ["/app/installations/5/access_tokens", REPOSITORY, REPOSITORY]
    assert vendor.calls[0].headers["Authorization"].lower().startswith("bearer ey")
    assert vendor.calls[1].headers["Authorization"].lower() == "token ghs_ours"


# ---- bad days: all ways of calling, all ways of being refused --------------------------------------------------------


async def _all(found: AsyncIterator[Any]) -> None:
    async for _ in found:
        pass


# one call of each method, and the path that it asks
Step = Callable[[GitHub], Awaitable[Any]]
EVERY: dict[str, tuple[str, str, Step]] = {
    "permission": ("GET", "/collaborators/maya/permission", lambda g: g.permission(WHERE, "maya")),
    "pull": ("GET", "/pulls/8", lambda g: g.pull(WHERE, 8)),
    "compare": ("GET", "/compare/a...b", lambda g: g.compare(WHERE, "a", "b")),
    "commit": ("GET", "/commits/main", lambda g: g.commit(WHERE, "main")),
    "commit_of": ("GET", "/repos/o/r/commits/main", lambda g: g.commit_of("o/r", "main", WHERE)),
    "latest_release": ("GET", "/releases/latest", lambda g: g.latest_release(WHERE)),
    "file": ("GET", "/contents/a.yml", lambda g: g.file(WHERE, "a.yml", SHA)),
    "changed_files": ("GET", "/pulls/8/files", lambda g: g.changed_files(WHERE, 8)),
    "pulls_with_head": ("GET", f"/commits/{SHA}/pulls", lambda g: g.pulls_with_head(WHERE, SHA)),
    "repository": ("GET", "", lambda g: g.repository(WHERE)),
    "react": ("POST", "/issues/comments/3/reactions", lambda g: g.react(WHERE, 3, "eyes")),
    "create_comment": ("POST", "/issues/8/comments", lambda g: g.create_comment(WHERE, 8, "x")),
    "update_comment": ("PATCH", "/issues/comments/3", lambda g: g.update_comment(WHERE, 3, "x")),
    "find_comment": ("GET", "/issues/8/comments", lambda g: g.find_comment(WHERE, 8, "m", "2026-01-01T00:00:00Z")),
    "create_check": ("POST", "/check-runs", lambda g: g.create_check(WHERE, CHECK)),
    "update_check": ("PATCH", "/check-runs/3", lambda g: g.update_check(WHERE, 3, CHECK)),
    "find_check": ("GET", f"/commits/{SHA}/check-runs", lambda g: g.find_check(WHERE, SHA, "n", "r1")),
    "deliveries": ("GET", "/app/hook/deliveries", lambda g: _all(g.deliveries())),
    "redeliver": ("POST", "/app/hook/deliveries/3/attempts", lambda g: g.redeliver(3)),
    "installation_token": ("POST", "/app/installations/9/access_tokens", lambda g: g.installation_token(9)),
}
# None for an answer that may be another one a little later
REFUSALS: list[tuple[int, str, dict[str, str], type[Exception] | None]] = [
    (404, "Not Found", {}, Gone),
    (410, "Issues are disabled for this repo", {}, Gone),
    (401, "Bad credentials", {}, Denied),
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
    path = path if path.startswith(("/app/", "/repos/")) else REPOSITORY + path
    for status, message, more, expected in REFUSALS:
        headers = {"X-RateLimit-Limit": "5000", "X-RateLimit-Reset": "1", "X-RateLimit-Remaining": "1"} | more
        body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
        vendor.answers.pop((method, path), None)
        vendor.put(method, path, body, status, headers)
        if expected is Gone and name in ("permission", "file"):
            assert await call(vendor.github) == {"permission": "none", "file": None}[name]
            continue
        with pytest.raises(Exception) as raised:  # noqa: PT011
            await call(vendor.github)
        assert isinstance(raised.value, expected or gidgethub.GitHubException), (status, message, raised.value)


async def test_a_moved_repository_is_followed_with_the_same_method(vendor: Vendor) -> None:
    moved = {"message": "Moved Permanently", "url": "x", "documentation_url": "https://docs.github.com/rest"}
    there = f"{vendor.api_url}/repositories/8/issues/8/comments"
    vendor.put("POST", f"{REPOSITORY}/issues/8/comments", moved, 307, {"Location": there})
    vendor.show("POST", "/repositories/8/issues/8/comments", 201)
    assert await vendor.github.create_comment(WHERE, 8, "Hello.") == 1
    assert await vendor.calls[-1].json() == {"body": "Hello."}
    vendor.forgive("-> 307: GitHub describes no such status")


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
