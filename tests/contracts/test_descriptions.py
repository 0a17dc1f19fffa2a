"""That the judge judges: GitHub's descriptions find what is wrong, and its examples are read without an error."""

from typing import Any

import pytest

from bot.github.events import read_event
from tests.harness.github_contract import RestContract, WebhookContract, examples

REPOSITORY = "/repositories/7"
CHECK = {"name": "benchbot", "head_sha": "a" * 40}


@pytest.fixture(scope="module")
def rest() -> RestContract:
    return RestContract()


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "said"),
    [
        ("POST", "/check-runs", {}, {**CHECK, "status": "done"}, "status"),
        ("POST", "/check-runs", {}, {**CHECK, "colour": "red"}, "no field colour"),
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
    # none of GitHub's examples is a comment on a pull request
    assert "Commented" not in read
