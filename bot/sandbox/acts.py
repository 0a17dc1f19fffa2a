"""What people and Apps do on a pull request, by the rules that GitHub sets, and what Apps are told of it."""

from typing import Any

from bot.sandbox.issue_acts import IssueActs
from bot.sandbox.release_acts import ReleaseActs
from bot.sandbox.repository_acts import RepositoryActs
from bot.sandbox.state import (
    Account,
    App,
    CheckRun,
    Problem,
    Pull,
    Repository,
    Review,
    invalid,
    pull_of,
)

REVIEWS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


class Acts(IssueActs, ReleaseActs, RepositoryActs):
    """Every method changes the state and tells the Apps. Raises Problem where GitHub would refuse."""

    # ---- reviews ----------------------------------------------------------------------------------------------------

    def review(
        self, repository: Repository, number: int, who: Account, event: str, body: str, commit: str = ""
    ) -> Review:
        """A submitted review of a commit, the head by default."""
        pull = pull_of(repository, number)
        if event not in REVIEWS:
            raise invalid("PullRequestReview", "event", "is not APPROVE, REQUEST_CHANGES or COMMENT")
        if event == "APPROVE" and pull.author is who:
            raise Problem(422, "Can not approve your own pull request")
        if event != "APPROVE" and not body.strip():
            raise invalid("PullRequestReview", "body", "is missing")
        now = self.state.clock()
        review = Review(
            id=self.state.new_id(),
            author=who,
            state=REVIEWS[event],
            body=body,
            commit=commit or pull.head_sha,
            submitted_at=now,
            updated_at=now,
        )
        pull.reviews.append(review)
        self._tell_review("submitted", repository, pull, review, who)
        return review

    def dismiss(self, repository: Repository, number: int, review_id: int, who: Account, message: str = "") -> Review:
        """Take a review's weight away; the message stands in the conversation."""
        pull = pull_of(repository, number)
        for review in pull.reviews:
            if review.id == review_id:
                review.state, review.updated_at = "DISMISSED", self.state.clock()
                told = f"{who.login} dismissed the review of {review.author.login}"
                pull.happenings.append((review.updated_at, f"{told}: {message}" if message else told))
                self._tell_review("dismissed", repository, pull, review, who)
                return review
        raise Problem(404, "Not Found")

    def _tell_review(self, action: str, repository: Repository, pull: Pull, review: Review, who: Account) -> None:
        # webhooks write the state in small letters, and add when it was last changed
        shape = self.shapes.review(repository, pull, review) | {"state": review.state.lower()}
        fields = {"action": action, "review": shape, "pull_request": self.shapes.pull(repository, pull)}
        self._tell("pull_request_review", fields, repository, who)

    # ---- check runs -------------------------------------------------------------------------------------------------

    def check(self, repository: Repository, app: App, head_sha: str, fields: dict[str, Any]) -> CheckRun:
        """A new check run of an App."""
        suites = [check.suite_id for check in repository.checks if check.app is app and check.head_sha == head_sha]
        suite = suites[0] if suites else self.state.new_id()
        check = CheckRun(id=self.state.new_id(), suite_id=suite, app=app, head_sha=head_sha, fields={})
        self.update_check(repository, check, fields, told="created")
        repository.checks.append(check)
        return check

    def update_check(self, repository: Repository, check: CheckRun, fields: dict[str, Any], told: str = "") -> None:
        """What the App says now; annotations add up, the rest replaces what it said before."""
        if fields.get("status") == "completed" and not fields.get("conclusion"):
            raise invalid("CheckRun", "conclusion", "is missing, though the status is completed")
        output = dict(fields.get("output") or {})
        if output and not (output.get("summary") and (output.get("title") or check.fields.get("output"))):
            raise invalid("CheckRun", "output", "needs a title and a summary")
        check.annotations += output.pop("annotations", None) or []
        if fields.get("conclusion"):
            fields = {**fields, "status": "completed"}
        elif fields.get("status") in ("queued", "in_progress"):
            fields = {**fields, "conclusion": None, "completed_at": None}
        before = check.fields.get("status")
        check.fields = {"status": "queued", **check.fields, **fields} | ({"output": output} if output else {})
        if told or (check.fields["status"] == "completed" and before != "completed"):
            self._tell_check(told or "completed", repository, check, check.app.bot)

    def rerequest(self, repository: Repository, check: CheckRun, who: Account) -> None:
        """Somebody pressed "re-run" beside a check run."""
        self._may_press(repository, who)
        self._tell_check("rerequested", repository, check, who)

    def press(self, repository: Repository, check: CheckRun, who: Account, identifier: str) -> None:
        """Somebody pressed one of the App's own buttons."""
        self._may_press(repository, who)
        if identifier not in [action["identifier"] for action in check.fields.get("actions") or ()]:
            raise Problem(404, "Not Found")
        more = {"requested_action": {"identifier": identifier}}
        self._tell_check("requested_action", repository, check, who, **more)

    def _may_press(self, repository: Repository, who: Account) -> None:
        if not repository.allows(who, "write"):
            raise Problem(403, "Must have write rights to Repository.")

    def _tell_check(self, action: str, repository: Repository, check: CheckRun, who: Account, **more: Any) -> None:
        fields = {"action": action, "check_run": self.shapes.check(repository, check), **more}
        self._tell("check_run", fields, repository, who, only=check.app)
