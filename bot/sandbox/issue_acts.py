"""Issues, and what is said in the conversation of an issue or a pull request, by the rules that GitHub sets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bot.sandbox.pull_acts import PullActs
from bot.sandbox.state import (
    REACTIONS,
    Account,
    App,
    Comment,
    Issue,
    Problem,
    Pull,
    Reaction,
    Repository,
    Thread,
    invalid,
    thread_of,
)

LONGEST_TEXT = 65_536
LONGEST_TITLE = 256
LONGEST_LABEL = 50
REASONS = ("completed", "not_planned", "duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts on a repository, and by which App; people need a right for what an App's permission allows."""

    account: Account
    app: App | None = None

    def may(self, repository: Repository, right: str) -> bool:
        """Whether it has the right of a person, or the permission of an App that was let in."""
        return self.app is not None or repository.allows(self.account, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a conversation shall become; None leaves a field as it is. `reason` counts only when the state changes."""

    title: str | None = None
    body: str | None = None
    state: str | None = None
    reason: str | None = None
    labels: tuple[str, ...] | None = None


class IssueActs(PullActs):
    """Every method changes the state and tells the Apps. Raises Problem where GitHub would refuse."""

    # ---- issues -----------------------------------------------------------------------------------------------------

    def open_issue(self, repository: Repository, actor: Actor, wanted: Wanted) -> Issue:
        """A new issue. Labels of people who may not set them are dropped without a word."""
        title, now = wanted.title or "", self.state.clock()
        _check(wanted, title)
        issue = Issue(
            id=self.state.new_id(),
            number=repository.new_number(),
            author=actor.account,
            title=title,
            body=wanted.body or "",
            created_at=now,
            updated_at=now,
            app=actor.app,
        )
        if actor.may(repository, "triage"):
            issue.labels = self._known(repository, wanted.labels or ())
        repository.issues[issue.number] = issue
        self._tell_issue("opened", repository, issue, actor.account)
        for name in issue.labels:
            label = self.shapes.label(repository, name)
            self._tell_issue("labeled", repository, issue, actor.account, label=label)
        return issue

    async def update(self, repository: Repository, number: int, actor: Actor, wanted: Wanted) -> Thread:
        """Title, text, labels and state of an issue or a pull request; its author and people with triage right may."""
        thread = thread_of(repository, number)
        triages = actor.may(repository, "triage")
        if thread.author is not actor.account and not triages:
            raise Problem(403, "Must have triage rights to Repository.")
        _check(wanted, thread.title if wanted.title is None else wanted.title)
        self._reword(repository, thread, actor.account, wanted)
        if wanted.labels is not None and triages:
            self._relabel(repository, thread, actor.account, self._known(repository, wanted.labels))
        if wanted.state == ("closed" if thread.open else "open"):
            await self._turn(repository, thread, actor.account, wanted.reason)
        return thread

    def _reword(self, repository: Repository, thread: Thread, who: Account, wanted: Wanted) -> None:
        changes: dict[str, Any] = {}
        if wanted.title is not None and wanted.title != thread.title:
            changes["title"], thread.title = {"from": thread.title}, wanted.title
        if wanted.body is not None and wanted.body != thread.body:
            changes["body"], thread.body = {"from": thread.body}, wanted.body
        if changes:
            thread.updated_at = self.state.clock()
            if isinstance(thread, Issue):
                self._tell_issue("edited", repository, thread, who, changes=changes)

    def _relabel(self, repository: Repository, thread: Thread, who: Account, names: list[str]) -> None:
        before, thread.labels = thread.labels, names
        moved = [("unlabeled", name) for name in before if name not in names]
        moved += [("labeled", name) for name in names if name not in before]
        for action, name in moved:
            thread.updated_at = self.state.clock()
            if isinstance(thread, Issue):
                label = self.shapes.label(repository, name)
                self._tell_issue(action, repository, thread, who, label=label)

    async def _turn(self, repository: Repository, thread: Thread, who: Account, reason: str | None) -> None:
        """Close what is open, open what is closed."""
        if isinstance(thread, Pull):
            turn = self.close if thread.open else self.reopen
            await turn(repository, thread.number, who)
        elif isinstance(thread, Issue):
            now, closes = self.state.clock(), thread.open
            thread.closed_at, thread.updated_at = now if closes else None, now
            thread.state_reason = "reopened"
            if closes:
                thread.state_reason = reason if reason in REASONS else "completed"
            how = f" as {thread.state_reason.replace('_', ' ')}" if closes else ""
            thread.happenings.append((now, f"{who.login} {'closed' if closes else 'reopened'} this{how}"))
            self._tell_issue("closed" if closes else "reopened", repository, thread, who)

    def _known(self, repository: Repository, names: Iterable[str]) -> list[str]:
        """Labels by name, each once; new ones are made."""
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if name not in repository.labels:
                repository.labels[name] = self.state.new_id()
        return wanted

    def _tell_issue(self, action: str, repository: Repository, issue: Issue, who: Account, **more: Any) -> None:
        fields = {"action": action, "issue": self.shapes.issue(repository, issue), **more}
        self._tell("issues", fields, repository, who)

    # ---- comments ---------------------------------------------------------------------------------------------------

    def comment(self, repository: Repository, number: int, who: Account, body: str, app: App | None = None) -> Comment:
        """A new comment in the conversation."""
        thread = thread_of(repository, number)
        _text(body)
        if thread.locked and not repository.allows(who, "write"):
            raise Problem(403, "Unable to create comment because issue is locked.")
        now = self.state.clock()
        comment = Comment(id=self.state.new_id(), author=who, body=body, created_at=now, updated_at=now, app=app)
        thread.comments.append(comment)
        thread.updated_at = now
        self._tell_comment("created", repository, thread, comment, who)
        return comment

    def edit(self, repository: Repository, thread: Thread, comment: Comment, who: Account, body: str) -> None:
        """Another text for a comment; its author and people with write right may."""
        _text(body)
        if comment.author is not who and not repository.allows(who, "write"):
            raise Problem(403, "Must have admin rights to Repository.")
        before, comment.body = comment.body, body
        comment.updated_at = self.state.clock()
        self._tell_comment("edited", repository, thread, comment, who, changes={"body": {"from": before}})

    def delete(self, repository: Repository, thread: Thread, comment: Comment, who: Account) -> None:
        """Take a comment away."""
        if comment.author is not who and not repository.allows(who, "write"):
            raise Problem(403, "Must have admin rights to Repository.")
        thread.comments.remove(comment)
        self._tell_comment("deleted", repository, thread, comment, who)

    def react(self, target: Comment | Thread, who: Account, content: str) -> tuple[Reaction, bool]:
        """The sign, and whether it is new: a second one of the same kind changes nothing."""
        if content not in REACTIONS:
            raise invalid("Reaction", "content", "is not a reaction")
        for reaction in target.reactions:
            if reaction.author is who and reaction.content == content:
                return reaction, False
        made = Reaction(id=self.state.new_id(), author=who, content=content, created_at=self.state.clock())
        target.reactions.append(made)
        return made, True

    def _tell_comment(
        self, action: str, repository: Repository, thread: Thread, comment: Comment, who: Account, **more: Any
    ) -> None:
        fields = {
            "action": action,
            "issue": self.shapes.issue(repository, thread),
            "comment": self.shapes.comment(repository, thread, comment),
            **more,
        }
        self._tell("issue_comment", fields, repository, who)


def _check(wanted: Wanted, title: str) -> None:
    """Everything before anything changes. Raises Problem."""
    if not title.strip():
        raise invalid("Issue", "title", "is missing")
    if len(title) > LONGEST_TITLE:
        raise invalid("Issue", "title", f"is too long (maximum is {LONGEST_TITLE} characters)")
    _length("Issue", wanted.body or "")
    if any(not name.strip() or len(name) > LONGEST_LABEL for name in wanted.labels or ()):
        raise invalid("Label", "name", f"is empty or too long (maximum is {LONGEST_LABEL} characters)")
    if wanted.reason not in (None, "reopened", *REASONS):
        raise invalid("Issue", "state_reason", f"is not one of {', '.join(REASONS)}")


def _text(body: str) -> None:
    if not body.strip():
        raise invalid("IssueComment", "body", "is missing")
    _length("IssueComment", body)


def _length(resource: str, body: str) -> None:
    if len(body) > LONGEST_TEXT:
        raise invalid(resource, "body", f"is too long (maximum is {LONGEST_TEXT} characters)")
