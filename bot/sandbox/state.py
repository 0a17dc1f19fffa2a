"""What the local GitHub knows: accounts, apps, repositories and what is said and done in them. All of it in memory."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
RIGHTS = ("none", "read", "triage", "write", "maintain", "admin")


class Problem(Exception):
    """An answer that is not 2xx: its status, GitHub's message, and the fields at fault."""

    def __init__(self, status: int, message: str, errors: tuple[Mapping[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors


class Moved(Problem):
    """The repository has another name now, and nobody has taken the old one."""

    def __init__(self, repository: "Repository") -> None:
        super().__init__(301, "Moved Permanently")
        self.repository = repository


def not_found() -> Problem:
    """What is not there, and what one may not see, look the same."""
    return Problem(404, "Not Found")


def invalid(resource: str, name: str, why: str) -> Problem:
    """One field that cannot be used."""
    error = {"resource": resource, "field": name, "code": "custom", "message": why}
    return Problem(422, "Validation Failed", (error,))


@dataclass(slots=True, kw_only=True, eq=False)
class Account:
    """A user, an organisation, or the bot user of an App."""

    id: int
    login: str
    kind: str = "User"


@dataclass(slots=True, kw_only=True, eq=False)
class App:
    """A registered App: its key pair, the hook that it is told through, what it may do and hear."""

    id: int
    slug: str
    name: str
    owner: Account
    bot: Account
    private_key: str
    public_key: str
    webhook_secret: str
    webhook_url: str
    permissions: Mapping[str, str]
    events: tuple[str, ...]
    created_at: float


@dataclass(slots=True, kw_only=True, eq=False)
class Installation:
    """An App on all repositories of one account."""

    id: int
    app: App
    account: Account
    created_at: float


@dataclass(slots=True, kw_only=True, eq=False)
class Comment:
    """A comment in the conversation of an issue or a pull request."""

    id: int
    author: Account
    body: str
    created_at: float
    updated_at: float
    app: App | None = None
    reactions: list["Reaction"] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False)
class Reaction:
    """One person's sign on a comment, or on what a conversation began with."""

    id: int
    author: Account
    content: str
    created_at: float


@dataclass(slots=True, kw_only=True, eq=False)
class Review:
    """A review of one commit. `state` is APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED."""

    id: int
    author: Account
    state: str
    body: str
    commit: str
    submitted_at: float
    updated_at: float


@dataclass(slots=True, kw_only=True, eq=False)
class CheckRun:
    """A check run of one App on one commit; `fields` is what the App last said of it."""

    id: int
    suite_id: int
    app: App
    head_sha: str
    fields: dict[str, Any]
    annotations: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False)
class WorkflowRun:
    """One run of a workflow with one job, whose id is its check run's too. Nobody here runs it: tests say what happens.

    `status` is queued, in_progress or completed. One that is `deaf` ends only when it is made to.
    """

    id: int
    job_id: int
    workflow: str
    title: str
    label: str
    inputs: Mapping[str, str]
    actor: Account
    ref: str
    head_sha: str
    created_at: float
    status: str = "queued"
    conclusion: str | None = None
    runner: str | None = None
    deaf: bool = False
    steps: list[tuple[str, str]] = field(default_factory=list)
    annotations: list[Mapping[str, Any]] = field(default_factory=list)

    def end(self, conclusion: str) -> None:
        """It is over."""
        self.status, self.conclusion = "completed", conclusion


@dataclass(slots=True, kw_only=True, eq=False)
class Thread:
    """A conversation with a number: what issues and pull requests have in common. `app` is set when an App began it."""

    id: int
    number: int
    author: Account
    title: str
    body: str
    created_at: float
    updated_at: float
    app: App | None = None
    closed_at: float | None = None
    locked: bool = False
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    # what happened between the comments, for the page: time, sentence
    happenings: list[tuple[float, str]] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Neither closed nor merged."""
        return self.closed_at is None


@dataclass(slots=True, kw_only=True, eq=False)
class Issue(Thread):
    """An issue. `state_reason` is completed, not_planned, duplicate or reopened once it was closed."""

    state_reason: str | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Pull(Thread):
    """A pull request. `head_repository` is None when the fork was deleted."""

    base_ref: str
    base_sha: str
    head_repository: "Repository | None"
    head_ref: str
    head_sha: str
    merged: bool = False
    # who merged it, and the commit of the base branch that it became
    merged_by: Account | None = None
    merge_sha: str = ""
    reviews: list[Review] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False)
class Release:
    """A release of a tag. `target` is the branch or commit that a missing tag is made from; `created_at` is the time of
    the commit, as on GitHub. A draft was published never, and its tag need not be there.
    """

    id: int
    author: Account
    tag: str
    target: str
    name: str
    body: str
    created_at: float
    published_at: float | None = None
    draft: bool = False
    prerelease: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Repository:
    """A repository with its bare git folder, and who has which right on it."""

    id: int
    owner: Account
    name: str
    folder: Path
    created_at: float
    private: bool = False
    default_branch: str = "main"
    parent: "Repository | None" = None
    rights: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    # names of labels, each with its id
    labels: dict[str, int] = field(default_factory=dict)
    checks: list[CheckRun] = field(default_factory=list)
    runs: list[WorkflowRun] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    # the release that was said to be the latest; without one the newest commit decides
    latest_release: Release | None = None
    # branches and tags as they were when somebody last looked: what differs from it was pushed since
    refs: dict[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner.login}/{self.name}"

    @property
    def threads(self) -> dict[int, Thread]:
        """Issues and pull requests by number, which they share, oldest first."""
        return dict(sorted((*self.issues.items(), *self.pulls.items())))

    @property
    def published(self) -> list[Release]:
        """Releases that are no drafts, the newest commit first."""
        shown = [release for release in self.releases if not release.draft]
        return sorted(shown, key=lambda release: (release.created_at, release.id), reverse=True)

    @property
    def latest(self) -> Release | None:
        """The latest release, which is neither a draft nor a pre-release."""
        full = [release for release in self.published if not release.prerelease]
        return self.latest_release if self.latest_release in full else next(iter(full), None)

    def new_number(self) -> int:
        """The number of the next issue or pull request."""
        return max((*self.issues, *self.pulls), default=0) + 1

    def right(self, account: Account) -> str:
        """The right of an account: its own, or what everybody has."""
        if account is self.owner:
            return "admin"
        return self.rights.get(account.login, "none" if self.private else "read")

    def allows(self, account: Account, right: str) -> bool:
        """Whether the account has this right or a greater one."""
        return RIGHTS.index(self.right(account)) >= RIGHTS.index(right)


@dataclass(slots=True, kw_only=True, eq=False)
class Token:
    """Who a bearer token stands for: a person, or an installation until a time."""

    account: Account
    installation: Installation | None = None
    until: float | None = None


class State:
    """Everything, and the ways to find it. `clock` gives seconds since the epoch; `origin` is set when serving."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.folder = folder
        self.clock = clock
        self.origin = "http://127.0.0.1"
        self.accounts: dict[str, Account] = {}
        self.apps: dict[int, App] = {}
        self.manifests: dict[str, App] = {}
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[int, Repository] = {}
        # names that repositories had before, in small letters; whoever takes one takes it over
        self.former_names: dict[str, Repository] = {}
        self.tokens: dict[str, Token] = {}
        self._ids = itertools.count(1001)

    def new_id(self) -> int:
        """A number that nothing else here has."""
        return next(self._ids)

    def account(self, login: str) -> Account:
        """An account by its login, whatever its case. Raises Problem 404."""
        found = self.accounts.get(login.lower())
        if found is None:
            raise not_found()
        return found

    def repository(self, full_name: str) -> Repository:
        """A repository by `owner/name`, whatever the case. Raises Problem 404, Moved for a former name."""
        for repository in self.repositories.values():
            if repository.full_name.lower() == full_name.lower():
                return repository
        if full_name.lower() in self.former_names:
            raise Moved(self.former_names[full_name.lower()])
        raise not_found()

    def installations_of(self, repository: Repository) -> list[Installation]:
        """The installations that reach a repository."""
        return [each for each in self.installations.values() if each.account is repository.owner]


def iso(seconds: float) -> str:
    """A time as GitHub writes it, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pull_of(repository: Repository, number: int) -> Pull:
    """A pull request by its number. Raises Problem 404."""
    if number not in repository.pulls:
        raise not_found()
    return repository.pulls[number]


def thread_of(repository: Repository, number: int) -> Thread:
    """An issue or a pull request by its number. Raises Problem 404."""
    found = repository.issues.get(number) or repository.pulls.get(number)
    if found is None:
        raise not_found()
    return found


def comment_of(repository: Repository, comment_id: int) -> tuple[Thread, Comment]:
    """A comment by its id, with the conversation it stands in. Raises Problem 404."""
    for thread in repository.threads.values():
        for comment in thread.comments:
            if comment.id == comment_id:
                return thread, comment
    raise not_found()
