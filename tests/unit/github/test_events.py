"""Webhook deliveries: what is let in, and what they become."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from bot.github.events import BadDelivery, CheckAsked, Commented, happened, open_delivery, read_event
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


def _comment(**changes: Any) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(case_file("15-issue_comment-created.json").read_text())
    payload["installation"] = {"id": 5}
    payload["issue"]["pull_request"] = {"url": "https://api.github.com/repos/a/b/pulls/1"}
    payload["comment"]["body"] = "/benchmark resnet50"
    return payload | changes


def test_a_real_comment_on_an_issue_is_nothing() -> None:
    payload = json.loads(case_file("15-issue_comment-created.json").read_text())
    assert read_event("issue_comment", payload) is None
    payload["comment"]["body"] = "/benchmark resnet50"
    assert read_event("issue_comment", {**payload, "installation": {"id": 5}}) is None


def test_a_comment_on_a_pull_request() -> None:
    event = read_event("issue_comment", _comment())
    assert isinstance(event, Commented)
    assert (event.action, event.body, event.installation_id) == ("created", "/benchmark resnet50", 5)


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
