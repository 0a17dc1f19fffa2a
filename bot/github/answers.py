"""What GitHub answers, as nouns of our own. Pure: JSON in, frozen values out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.core.nouns import Person


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """One commit. `author` is a login, or the name that git knows where no account is known.

    `committed_at` is in seconds since the epoch; `first_parent` is empty for a root, and stands first in `parents`.
    """

    sha: str
    parents: tuple[str, ...]
    author: str
    committed_at: float
    subject: str

    @property
    def first_parent(self) -> str:
        """The commit that the branch named before this one came."""
        return self.parents[0] if self.parents else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedPull:
    """The pull request by which a commit came to its branch; `merge_sha` is what the branch became then."""

    number: int
    title: str
    author: Person
    merge_sha: str


def person_of(user: Mapping[str, Any] | None) -> Person:
    """An account; the ghost for one that was deleted."""
    user = user or {"id": 0, "login": "ghost"}
    return Person(id=user["id"], login=user["login"], kind=user.get("type", "User"))


def commit_of(answer: Mapping[str, Any]) -> CommitFacts:
    """GitHub's `commit`."""
    told = answer["commit"]
    signed = told.get("committer") or told.get("author") or {}
    return CommitFacts(
        sha=answer["sha"],
        parents=tuple(parent["sha"] for parent in answer["parents"]),
        # GitHub gives {} or null where no account has the mail address
        author=(answer.get("author") or {}).get("login") or (told.get("author") or {}).get("name") or "ghost",
        committed_at=datetime.fromisoformat(signed["date"]).timestamp() if signed.get("date") else 0.0,
        subject=told["message"].partition("\n")[0],
    )


def merged_pull_of(answer: Mapping[str, Any]) -> MergedPull:
    """GitHub's `pull-request-simple` of one that is merged."""
    return MergedPull(
        number=answer["number"],
        title=answer["title"],
        author=person_of(answer.get("user")),
        merge_sha=answer.get("merge_commit_sha") or "",
    )
