"""That the judge judges: GitHub's descriptions find what is wrong, and its examples are read without an error."""

import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.github.events import read_event
from tests.contracts.vendor_answers import vendor_answer
from tests.harness.github_contract import RestContract, WebhookContract, examples, middleware

REPOSITORY = "/repositories/7"
OUTPUT = {"title": "t", "summary": "s"}
IMAGE = {"alt": "curves", "image_url": "https://example.org/a.png", "size": 3}
CHECK = {"name": "benchbot", "head_sha": "a" * 40}


@pytest.fixture(scope="module")
def rest() -> RestContract:
    return RestContract()


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "said"),
    [
        ("POST", "/check-runs", {}, {**CHECK, "status": "done"}, "status"),
        ("POST", "/check-runs", {}, {**CHECK, "colour": "red"}, "no field colour"),
        ("POST", "/check-runs", {}, {**CHECK, "output": {**OUTPUT, "colour": "red"}}, "no field output/colour"),
        (
            "POST",
            "/check-runs",
            {},
            {**CHECK, "output": {**OUTPUT, "images": [IMAGE]}},
            "no field output/images/0/size",
        ),
        ("PATCH", "/check-runs/5", {}, {"output": {**OUTPUT, "colour": "red"}}, "no field output/colour"),
        ("POST", "/check-runs", {}, {**CHECK, "external_id": None}, "external_id"),
        ("POST", "/check-runs", {}, {"name": "benchbot"}, "head_sha"),
        ("POST", "/check-runs", {}, {**CHECK, "output": {"title": "t", "summary": "s" * 65_536}}, "summary"),
        ("POST", "/check-runs", {}, {**CHECK, "actions": [{}] * 4}, "actions"),
        ("POST", "/issues/comments/1/reactions", {}, {"content": "thumbsup"}, "content"),
        ("GET", "/issues/1/comments", {"pages": "2"}, None, "no query parameter pages"),
        ("GET", "/issues/1/comments", {"page": "two"}, None, "page"),
        ("POST", "/issues/1/comments", {}, None, "body is missing"),
        ("GET", "/issue/1", {}, None, "no such call"),
    ],
)
def test_a_wrong_call_is_found(
    rest: RestContract, method: str, path: str, query: dict[str, str], body: Any, said: str
) -> None:
    found = rest.check_request(method, REPOSITORY + path, query, body)
    assert len(found) >= 1
    assert said in " ".join(found)


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("POST", "/check-runs", {}, {**CHECK, "status": "in_progress", "external_id": "r1"}),
        ("PATCH", "/check-runs/5", {}, {"status": "completed", "conclusion": "success"}),
        ("GET", "/contents/a/b/c.yml", {"ref": "main"}, None),
        ("GET", "/compare/main...feature/x", {}, None),
        ("GET", "/commits/heads/main", {}, None),
        ("GET", "/issues/1/comments", {"per_page": "100", "since": "2026-01-01T00:00:00Z"}, None),
    ],
)
def test_a_right_call_passes(rest: RestContract, method: str, path: str, query: dict[str, str], body: Any) -> None:
    assert rest.check_request(method, REPOSITORY + path, query, body) == []


def test_a_wrong_answer_is_found(rest: RestContract) -> None:
    path = REPOSITORY + "/issues/1/comments"
    assert any("node_id" in each for each in rest.check_response("POST", path, 201, {"id": 1}))
    assert rest.check_response("POST", path, 299, {}) == [
        "POST /repos/{owner}/{repo}/issues/{issue_number}/comments -> 299: GitHub describes no such status"
    ]
    assert rest.check_response("POST", path, 502, {"error": "x"}) != []
    assert rest.check_response("POST", path, 502, {"message": "x", "documentation_url": "y"}) == []
    assert rest.check_response("POST", path, 409, {"message": ["x"], "documentation_url": "y"}) != []


def test_an_answer_may_be_null_where_it_says_so_and_only_there(rest: RestContract) -> None:
    method, path = "POST", REPOSITORY + "/check-runs"
    answer = vendor_answer(rest, method, path, 201)
    nullable = {"conclusion": None, "external_id": None, "completed_at": None, "app": None, "check_suite": None}
    assert rest.check_response(method, path, 201, answer | nullable) == []
    for name in ("id", "status", "head_sha", "output"):
        found = rest.check_response(method, path, 201, answer | {name: None})
        assert found
        assert all(f"-> 201 {name}: " in said for said in found)
    (said,) = rest.check_response(method, path, 201, answer | {"conclusion": "splendid"})
    assert "conclusion" in said


def test_sentences_are_short(rest: RestContract) -> None:
    output = {"title": "t", "summary": "s" * 70_000, "c" * 500: 1}
    found = rest.check_request("POST", REPOSITORY + "/check-runs", {}, {**CHECK, "output": output})
    assert len(found) == 2
    assert max(map(len, found)) <= 200


async def test_both_sides_of_a_server_are_judged(rest: RestContract) -> None:
    """A wrong call and a wrong answer are both told, also when the handler raises its answer."""

    async def rate(_: web.Request) -> web.Response:
        return web.json_response({"resources": {}})

    async def pull(_: web.Request) -> web.Response:
        raise web.HTTPNotFound(text="nothing here")

    async def mended(_: web.Request) -> web.Response:
        body = {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}
        raise web.HTTPNotFound(text=json.dumps(body), content_type="application/json")

    violations: list[str] = []
    app = web.Application(middlewares=[middleware(rest, "/api", violations)])
    app.router.add_get("/api/rate_limit", rate)
    app.router.add_get("/api/repositories/7/pulls/1", pull)
    app.router.add_get("/api/repositories/7/pulls/2", mended)
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/api/rate_limit?page=2")).status == 200
        assert violations.pop(0) == "GET /rate_limit: no query parameter page"
        assert {said.partition(":")[0].strip() for said in violations} == {
            "GET /rate_limit -> 200",
            "GET /rate_limit -> 200 resources",
        }
        violations.clear()
        assert (await client.get("/api/repositories/7/pulls/1")).status == 404
        assert len(violations) == 1
        violations.clear()
        assert (await client.get("/api/repositories/7/pulls/2")).status == 404
        assert violations == []


def test_a_wrong_webhook_is_found() -> None:
    webhooks = WebhookContract()
    assert webhooks.check("issue_comment", {"action": "whispered"}) == [
        "issue-comment-whispered: GitHub describes no such webhook"
    ]
    assert any("comment" in each for each in webhooks.check("issue_comment", {"action": "created"}))


def test_every_example_of_a_webhook_is_read() -> None:
    """Real deliveries vary: none may raise, and those of our kind become events once they name an installation."""
    read: dict[str, int] = {}
    found = examples()
    assert len(found) > 300
    for event, payload in found:
        read_event(event, payload)
        made = read_event(event, {**payload, "installation": {"id": 1}})
        if made is not None:
            read[type(made).__name__] = read.get(type(made).__name__, 0) + 1
    assert read["PullChanged"] >= 8
    assert read["Reviewed"] >= 3
    assert read["CheckAsked"] >= 3
    assert read["RepositoryChanged"] >= 5
    assert read["Pushed"] >= 5
    assert read["Released"] >= 5
    assert read["Commented"] >= 5
