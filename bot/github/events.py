"""Webhook deliveries as typed events. Pure: bytes and headers in, one event or None out.

What a delivery lacks is None or the least trusted value; nothing here raises on strange payloads that are JSON objects.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs

import msgspec

from bot.core.nouns import Person


class BadDelivery(ValueError):
    """A delivery that is answered with `status` and a sentence, and stored nowhere."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event tells: which repository, by whom."""

    repository_id: int
    full_name: str
    private: bool
    default_branch: str
    installation_id: int
    sender: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Commented(Event):
    """A comment on a pull request or an issue was written, edited or deleted. `author` wrote it, `sender` did this."""

    action: Literal["created", "edited", "deleted"]
    number: int
    on_pull: bool
    comment_id: int
    author: Person
    body: str
    body_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed(Event):
    """A review was submitted, edited or dismissed. `state` is approved, changes_requested, commented or dismissed."""

    action: str
    number: int
    review_id: int
    author: Person
    state: str
    commit_sha: str
    body: str
    body_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullChanged(Event):
    """A pull request was opened, pushed to, reopened or closed."""

    action: str
    number: int
    head_sha: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAsked(Event):
    """Somebody pressed a button: re-run (check or suite) or one of our own actions."""

    action: Literal["rerequested", "requested_action"]
    app_id: int
    head_sha: str
    external_id: str
    identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed(Event):
    """A branch or tag was made, moved or deleted. `ref` is its full name; the side that is not there is empty.

    `forced` when `before` is no longer in the history of `after`.
    """

    ref: str
    before: str
    after: str
    forced: bool
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Event):
    """Something happened to a release: published, edited, deleted and more of GitHub's words.

    `target` is the branch or commit that the tag was (or would be) made from, not always what it names now.
    """

    action: str
    release_id: int
    tag: str
    target: str
    draft: bool
    prerelease: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryChanged(Event):
    """The repository was renamed, transferred, made public or private; ids stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A delivery whose signature holds: its headers' names, and its JSON text."""

    guid: str
    event: str
    text: str
    payload: Mapping[str, Any]


def open_delivery(headers: Mapping[str, str], raw: bytes, secret: str) -> Signed:
    """Check the signature over the raw bytes and read the body, JSON or form. Raises BadDelivery."""
    kind = headers.get("Content-Type", "").split(";")[0].strip().lower()
    if kind not in ("application/json", "application/x-www-form-urlencoded"):
        raise BadDelivery(415, "a webhook is application/json or application/x-www-form-urlencoded")
    expected = "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), headers.get("X-Hub-Signature-256", "").encode()):
        raise BadDelivery(401, "the signature does not fit the body; is the webhook secret the same on both sides?")
    guid, event = headers.get("X-GitHub-Delivery", ""), headers.get("X-GitHub-Event", "")
    if not guid or not event or len(guid) > 100 or len(event) > 100:
        raise BadDelivery(400, "the headers X-GitHub-Delivery and X-GitHub-Event are missing")
    try:
        text = raw.decode()
        if kind == "application/x-www-form-urlencoded":
            text = parse_qs(text, strict_parsing=True)["payload"][0]
        payload = msgspec.json.decode(text)
    except (ValueError, KeyError, RecursionError):
        raise BadDelivery(400, "the body is not JSON") from None
    if not isinstance(payload, dict):
        raise BadDelivery(400, "the body is not a JSON object")
    return Signed(guid=guid, event=event, text=text, payload=payload)


def happened(signed: Signed) -> str:
    """A name of what happened, the same for every report of it, whichever hook sent it."""
    p, action = signed.payload, str(signed.payload.get("action", ""))
    repository = _dig(p, "repository", "id")
    for key, stamp in (("comment", "updated_at"), ("review", "updated_at"), ("pull_request", "updated_at")):
        thing = p.get(key)
        if isinstance(thing, dict) and signed.event.startswith(("issue_comment", "pull_request")):
            mark = thing.get(stamp) or thing.get("submitted_at") or ""
            sha = _dig(p, "pull_request", "head", "sha") if key == "pull_request" else _dig(p, "review", "state")
            # an edit within the same second is told apart by its text
            text = hashlib.sha256(str(thing.get("body")).encode()).hexdigest()[:12] if key != "pull_request" else ""
            return f"{signed.event}.{action}:{repository}:{thing.get('id')}:{mark}:{sha}:{text}"
    return f"{signed.event}.{action}:{signed.guid}"


def read_event(event: str, payload: Mapping[str, Any]) -> Event | None:
    """The typed event, or None for what we have nothing to do with."""
    readers = {
        "issue_comment": _commented,
        "pull_request_review": _reviewed,
        "pull_request": _pull_changed,
        "check_run": _check_run,
        "check_suite": _check_suite,
        "push": _pushed,
        "release": _released,
        "repository": _repository,
    }
    if event not in readers or _dig(payload, "repository", "id") is None or _dig(payload, "installation", "id") is None:
        return None
    try:
        return readers[event](payload, _common(payload))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        return None


def _common(p: Mapping[str, Any]) -> dict[str, Any]:
    repository = p["repository"]
    return {
        "repository_id": int(repository["id"]),
        "full_name": str(repository["full_name"]),
        # what is not said to be public is private
        "private": repository.get("private", True) is not False,
        "default_branch": str(repository.get("default_branch") or "main"),
        "installation_id": int(p["installation"]["id"]),
        "sender": _person(p.get("sender")),
    }


def _commented(p: Mapping[str, Any], common: dict[str, Any]) -> Event | None:
    if p["action"] not in ("created", "edited", "deleted"):
        return None
    return Commented(
        **common,
        action=p["action"],
        number=int(p["issue"]["number"]),
        on_pull=bool(p["issue"].get("pull_request")),
        comment_id=int(p["comment"]["id"]),
        author=_person(p["comment"].get("user")),
        body=p["comment"].get("body") or "",
        body_before=_dig(p, "changes", "body", "from") or "",
    )


def _reviewed(p: Mapping[str, Any], common: dict[str, Any]) -> Event | None:
    review = p["review"]
    return Reviewed(
        **common,
        action=p["action"],
        number=int(p["pull_request"]["number"]),
        review_id=int(review["id"]),
        author=_person(review.get("user")),
        state=str(review.get("state", "")).lower(),
        commit_sha=review.get("commit_id") or "",
        body=review.get("body") or "",
        body_before=_dig(p, "changes", "body", "from") or "",
    )


def _pull_changed(p: Mapping[str, Any], common: dict[str, Any]) -> Event | None:
    if p["action"] not in ("opened", "synchronize", "reopened", "closed", "edited", "ready_for_review"):
        return None
    pull = p["pull_request"]
    return PullChanged(**common, action=p["action"], number=int(pull["number"]), head_sha=pull["head"]["sha"])


def _check_run(p: Mapping[str, Any], common: dict[str, Any]) -> Event | None:
    if p["action"] not in ("rerequested", "requested_action"):
        return None
    return CheckAsked(
        **common,
        action=p["action"],
        app_id=int(p["check_run"]["app"]["id"]),
        head_sha=p["check_run"]["head_sha"],
        external_id=p["check_run"].get("external_id") or "",
        identifier=_dig(p, "requested_action", "identifier") or "",
    )


def _check_suite(p: Mapping[str, Any], common: dict[str, Any]) -> Event | None:
    if p["action"] != "rerequested":
        return None
    suite = p["check_suite"]
    return CheckAsked(
        **common,
        action="rerequested",
        app_id=int(suite["app"]["id"]),
        head_sha=suite["head_sha"],
        external_id="",
        identifier="",
    )


def _pushed(p: Mapping[str, Any], common: dict[str, Any]) -> Event:
    before, after = (str(p[side]) for side in ("before", "after"))
    return Pushed(
        **common,
        ref=str(p["ref"]),
        # forty zeros stand for no commit
        before=before if before.strip("0") else "",
        after=after if after.strip("0") else "",
        forced=p.get("forced") is True,
        deleted=p.get("deleted") is True,
    )


def _released(p: Mapping[str, Any], common: dict[str, Any]) -> Event:
    release = p["release"]
    return Released(
        **common,
        action=str(p["action"]),
        release_id=int(release["id"]),
        tag=str(release["tag_name"]),
        target=str(release.get("target_commitish") or ""),
        draft=release.get("draft") is True,
        prerelease=release.get("prerelease") is True,
    )


def _repository(_: Mapping[str, Any], common: dict[str, Any]) -> Event:
    return RepositoryChanged(**common)


def _person(user: Mapping[str, Any] | None) -> Person:
    user = user or {}
    kind = user.get("type", "User")
    return Person(
        id=int(user.get("id", 0)),
        login=str(user.get("login", "ghost")),
        kind=kind if kind in ("User", "Bot", "Organization") else "User",
    )


def _dig(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
