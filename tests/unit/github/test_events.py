"""Webhook deliveries: what is let in, and what they become."""

import copy
import hashlib
import hmac
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from bot.core.nouns import Person
from bot.github.events import (
    BadDelivery,
    CheckAsked,
    Commented,
    PullChanged,
    Pushed,
    Released,
    RepositoryChanged,
    Reviewed,
    Signed,
    happened,
    open_delivery,
    read_event,
)
from tests.harness.cases import case_file

SECRET = "s3cret"


def _headers(raw: bytes, **more: str) -> dict[str, str]:
    signature = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Delivery": "11-22",
        "X-GitHub-Event": "issue_comment",
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    return headers | {name.replace("_", "-"): value for name, value in more.items()}


def test_json_and_form_are_the_same() -> None:
    raw = json.dumps({"action": "created", "text": "ü"}).encode()
    form = urlencode({"payload": raw.decode()}).encode()
    as_json = open_delivery(_headers(raw), raw, SECRET)
    as_form = open_delivery(_headers(form, Content_Type="application/x-www-form-urlencoded"), form, SECRET)
    with_charset = open_delivery(_headers(raw, Content_Type="application/json; charset=utf-8"), raw, SECRET)
    assert as_json.payload == as_form.payload == with_charset.payload == {"action": "created", "text": "ü"}
    assert as_json.guid == "11-22"


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        (b"{}", {"X_Hub_Signature_256": "sha256=00"}, 401),
        (b"{}", {"X_Hub_Signature_256": ""}, 401),
        (b"{}", {"X_Hub_Signature_256": "sha1=ü"}, 401),
        (b"{}", {"Content_Type": "text/plain"}, 415),
        (b"{}", {"X_GitHub_Event": ""}, 400),
        (b"{}", {"X_GitHub_Delivery": "x" * 101}, 400),
        (b"{", {}, 400),
        (b"[1]", {}, 400),
        (b"\xff", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"payload=", {"Content_Type": "application/x-www-form-urlencoded"}, 400),
        (b"other=1", {"Content_Type": "application/x-www-form-urlencoded"}, 400),
    ],
)
def test_what_is_not_a_delivery_is_refused(raw: bytes, headers: dict[str, str], status: int) -> None:
    with pytest.raises(BadDelivery) as refused:
        open_delivery(_headers(raw, **headers), raw, SECRET)
    assert refused.value.status == status
    assert str(refused.value)


def test_the_signature_is_over_the_raw_bytes() -> None:
    raw = b'{"a":  1}'
    assert open_delivery(_headers(raw), raw, SECRET).payload == {"a": 1}
    with pytest.raises(BadDelivery):
        open_delivery(_headers(b'{"a": 1}'), raw, SECRET)


REPOSITORY = {"id": 7, "full_name": "octo/train", "private": False, "default_branch": "trunk"}
MAYA = {"id": 1, "login": "maya", "type": "User"}
COMMON = {"repository": REPOSITORY, "installation": {"id": 5}, "sender": MAYA}
SHA = "a" * 40


def _comment(**changes: Any) -> dict[str, Any]:
    link = {"url": "https://api.github.com/repos/octo/train/pulls/8"}
    comment = {"id": 3, "user": MAYA, "body": "/benchmark resnet50", "updated_at": "2026-01-01T00:00:00Z"}
    issue = {"number": 8, "pull_request": link}
    return copy.deepcopy({**COMMON, "action": "created", "issue": issue, "comment": comment} | changes)


def test_a_real_comment_on_an_issue_says_that_it_is_one() -> None:
    payload = json.loads(case_file("15-issue_comment-created.json").read_text())
    assert read_event("issue_comment", payload) is None  # no App was told
    event = read_event("issue_comment", {**payload, "installation": {"id": 5}})
    assert isinstance(event, Commented)
    assert (event.number, event.on_pull) == (1, False)


def test_a_comment_on_a_pull_request() -> None:
    event = read_event("issue_comment", _comment())
    assert event == Commented(
        repository_id=7,
        full_name="octo/train",
        private=False,
        default_branch="trunk",
        installation_id=5,
        sender=Person(id=1, login="maya", kind="User"),
        action="created",
        number=8,
        on_pull=True,
        comment_id=3,
        author=Person(id=1, login="maya", kind="User"),
        body="/benchmark resnet50",
        body_before="",
    )


def test_an_edit_tells_what_stood_there_before() -> None:
    event = read_event("issue_comment", _comment(action="edited", changes={"body": {"from": "before"}}))
    assert isinstance(event, Commented)
    assert (event.action, event.body, event.body_before) == ("edited", "/benchmark resnet50", "before")


def test_a_review() -> None:
    review = {"id": 4, "user": MAYA, "state": "APPROVED", "commit_id": SHA, "body": None}
    payload = {**COMMON, "action": "submitted", "review": review, "pull_request": {"number": 8}}
    event = read_event("pull_request_review", payload)
    assert isinstance(event, Reviewed)
    assert (event.number, event.review_id, event.state, event.commit_sha, event.body) == (8, 4, "approved", SHA, "")


@pytest.mark.parametrize(
    ("action", "read"), [("opened", True), ("synchronize", True), ("closed", True), ("labeled", False)]
)
def test_a_pull_request(action: str, read: bool) -> None:
    payload = {**COMMON, "action": action, "pull_request": {"number": 8, "head": {"sha": SHA}}}
    event = read_event("pull_request", payload)
    assert (event is not None) is read
    if isinstance(event, PullChanged):
        assert (event.action, event.number, event.head_sha) == (action, 8, SHA)


def test_buttons() -> None:
    run = {"app": {"id": 12}, "head_sha": SHA, "external_id": "r1"}
    pressed = {**COMMON, "action": "requested_action", "check_run": run, "requested_action": {"identifier": "cancel"}}
    event = read_event("check_run", pressed)
    assert isinstance(event, CheckAsked)
    assert (event.app_id, event.head_sha, event.external_id, event.identifier) == (12, SHA, "r1", "cancel")
    again = read_event("check_run", {**COMMON, "action": "rerequested", "check_run": run})
    assert isinstance(again, CheckAsked)
    assert (again.action, again.identifier) == ("rerequested", "")
    assert read_event("check_run", {**COMMON, "action": "completed", "check_run": run}) is None
    assert read_event("check_suite", {**COMMON, "action": "completed", "check_suite": run}) is None


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [("0" * 40, SHA, ("", SHA)), (SHA, "b" * 40, (SHA, "b" * 40)), (SHA, "0" * 40, (SHA, ""))],
)
def test_a_push(before: str, after: str, seen: tuple[str, str]) -> None:
    moved = {"before": before, "after": after, "forced": True, "deleted": not seen[1]}
    event = read_event("push", {**COMMON, "ref": "refs/heads/a/b", **moved})
    assert isinstance(event, Pushed)
    assert (event.ref, event.before, event.after) == ("refs/heads/a/b", *seen)
    assert (event.forced, event.deleted) == (True, not seen[1])
    assert read_event("push", {**COMMON, "ref": "refs/heads/a/b", "before": before}) is None


def test_a_release() -> None:
    release = {"id": 9, "tag_name": "v1.0", "target_commitish": "main", "draft": False, "prerelease": True}
    event = read_event("release", {**COMMON, "action": "published", "release": release})
    assert isinstance(event, Released)
    assert (event.action, event.release_id, event.tag, event.target) == ("published", 9, "v1.0", "main")
    assert (event.draft, event.prerelease) == (False, True)
    assert read_event("release", {**COMMON, "action": "published", "release": {"id": 9}}) is None


def test_a_renamed_repository() -> None:
    event = read_event("repository", {**COMMON, "action": "renamed"})
    assert isinstance(event, RepositoryChanged)
    assert (event.repository_id, event.full_name) == (7, "octo/train")


@pytest.mark.parametrize("event", ["ping", "star", "issue-comment", "", "../x", "__class__"])
def test_an_unknown_event_is_nothing(event: str) -> None:
    assert read_event(event, _comment()) is None


def _places(value: Any, *before: str | int) -> list[tuple[str | int, ...]]:
    pairs = value.items() if isinstance(value, dict) else ()
    return [before, *(place for key, each in pairs for place in _places(each, *before, key))]


@pytest.mark.parametrize("strange", [None, True, 2, [], {}, ["x"]])
@pytest.mark.parametrize("place", _places(_comment())[1:])
def test_a_value_of_another_kind_does_not_raise(place: tuple[str | int, ...], strange: Any) -> None:
    payload = _comment()
    inner: Any = payload
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = strange
    event = read_event("issue_comment", payload)
    assert event is None or isinstance(event, Commented)
    assert happened(Signed(guid="1", event="issue_comment", text="", payload=payload))


@pytest.mark.parametrize("missing", ["repository", "installation", "comment", "issue", "sender", "action"])
def test_a_payload_that_lacks_something_does_not_raise(missing: str) -> None:
    payload = _comment()
    del payload[missing]
    event = read_event("issue_comment", payload)
    assert event is None or missing == "sender"


def test_a_repository_that_is_not_said_to_be_public_is_private() -> None:
    payload = _comment()
    del payload["repository"]["private"]
    event = read_event("issue_comment", payload)
    assert event is not None
    assert event.private


def test_a_suite_of_another_app_tells_whose_it_is() -> None:
    payload = json.loads(case_file("16-check_suite-rerequested.json").read_text()) | {"installation": {"id": 5}}
    event = read_event("check_suite", payload)
    assert isinstance(event, CheckAsked)
    assert event.app_id == 29310


def test_the_same_happening_has_one_name_whoever_reports_it() -> None:
    raw = json.dumps(_comment()).encode()
    one = open_delivery(_headers(raw, X_GitHub_Delivery="1"), raw, SECRET)
    other = open_delivery(_headers(raw, X_GitHub_Delivery="2"), raw, SECRET)
    assert happened(one) == happened(other)
    edited = json.dumps(_comment(action="edited")).encode()
    assert happened(open_delivery(_headers(edited), edited, SECRET)) != happened(one)


@pytest.mark.parametrize(("key", "value"), [("id", 4), ("body", "/benchmark bert"), ("updated_at", "2026-01-02")])
def test_another_happening_has_another_name(key: str, value: Any) -> None:
    payload = _comment()
    payload["comment"][key] = value

    def named(content: dict[str, Any]) -> str:
        return happened(Signed(guid="1", event="issue_comment", text="", payload=content))

    assert named(payload) != named(_comment())


def test_what_has_no_time_of_its_own_is_named_by_its_delivery() -> None:
    one, other = (Signed(guid=guid, event="check_run", text="", payload={"action": "rerequested"}) for guid in "12")
    assert happened(one) != happened(other)


def test_a_large_delivery_is_read_whole() -> None:
    raw = json.dumps({"text": "x" * 24_000_000}).encode()
    signed = open_delivery(_headers(raw), raw, SECRET)
    assert len(signed.payload["text"]) == 24_000_000
    with pytest.raises(BadDelivery) as refused:
        open_delivery(_headers(raw), raw[:-1] + b" ", SECRET)
    assert refused.value.status == 401
