"""JSON as GitHub's REST API gives it, one method per kind of thing. The tests check it against GitHub's description."""

from bot.sandbox import bare
from bot.sandbox.issue_shapes import IssueShapes
from bot.sandbox.release_shapes import ReleaseShapes
from bot.sandbox.repository_shapes import API, Json, association, node_id
from bot.sandbox.state import Account, CheckRun, Pull, Repository, Review, WorkflowRun, iso

__all__ = ["API", "Json", "Shapes"]


class Shapes(IssueShapes, ReleaseShapes):
    """Renders state for one origin, such as `http://127.0.0.1:8000`."""

    # ---- pull requests and what is said about them ------------------------------------------------------------------

    def pull(self, repository: Repository, pull: Pull) -> Json:
        """pull-request-simple, which the full one builds on."""
        url, web = f"{self.api}/repos/{repository.full_name}", f"{self.web}/{repository.full_name}"
        this, issue = f"{url}/pulls/{pull.number}", f"{url}/issues/{pull.number}"
        links = {
            "self": this,
            "html": f"{web}/pull/{pull.number}",
            "issue": issue,
            "comments": f"{issue}/comments",
            "review_comments": f"{this}/comments",
            "review_comment": f"{url}/pulls/comments{{/number}}",
            "commits": f"{this}/commits",
            "statuses": f"{url}/statuses/{pull.head_sha}",
        }
        named = ("issue", "comments", "review_comments", "review_comment", "commits", "statuses")
        return {
            "url": this,
            "id": pull.id,
            "node_id": node_id("PullRequest", pull.id),
            "number": pull.number,
            "html_url": links["html"],
            "diff_url": links["html"] + ".diff",
            "patch_url": links["html"] + ".patch",
            **{f"{name}_url": links[name] for name in named},
            "state": "open" if pull.open else "closed",
            "locked": pull.locked,
            "title": pull.title,
            "user": self.user(pull.author),
            "body": pull.body,
            "created_at": iso(pull.created_at),
            "updated_at": iso(pull.updated_at),
            "closed_at": None if pull.closed_at is None else iso(pull.closed_at),
            "merged_at": iso(pull.closed_at) if pull.merged and pull.closed_at else None,
            "merge_commit_sha": pull.merge_sha or None,
            "assignee": None,
            "assignees": [],
            "requested_reviewers": [],
            "requested_teams": [],
            "labels": [self.label(repository, name) for name in pull.labels],
            "milestone": None,
            "draft": False,
            "head": self._end(pull.head_repository, pull.head_ref, pull.head_sha, pull.author),
            "base": self._end(repository, pull.base_ref, pull.base_sha, repository.owner),
            "_links": {name: {"href": link} for name, link in links.items()},
            "author_association": association(repository, pull.author),
            "auto_merge": None,
            "active_lock_reason": None,
        }

    def whole_pull(self, repository: Repository, pull: Pull, files: list[bare.Changed], commits: int) -> Json:
        """pull-request"""
        return self.pull(repository, pull) | {
            "merged": pull.merged,
            "mergeable": True,
            "rebaseable": True,
            "mergeable_state": "clean",
            "merged_by": self.user(pull.merged_by) if pull.merged_by else None,
            "comments": len(pull.comments),
            "review_comments": 0,
            "maintainer_can_modify": False,
            "commits": commits,
            "additions": sum(file.additions for file in files),
            "deletions": sum(file.deletions for file in files),
            "changed_files": len(files),
        }

    def _end(self, repository: Repository | None, ref: str, sha: str, account: Account) -> Json:
        return {
            "label": f"{account.login}:{ref}",
            "ref": ref,
            "sha": sha,
            "user": self.user(account),
            "repo": self.repository(repository) if repository else None,
        }

    def review(self, repository: Repository, pull: Pull, review: Review) -> Json:
        """pull-request-review"""
        web = f"{self.web}/{repository.full_name}/pull/{pull.number}#pullrequestreview-{review.id}"
        url = f"{self.api}/repos/{repository.full_name}/pulls/{pull.number}"
        return {
            "id": review.id,
            "node_id": node_id("PullRequestReview", review.id),
            "user": self.user(review.author),
            "body": review.body,
            "state": review.state,
            "html_url": web,
            "pull_request_url": url,
            "author_association": association(repository, review.author),
            "_links": {"html": {"href": web}, "pull_request": {"href": url}},
            "submitted_at": iso(review.submitted_at),
            "commit_id": review.commit,
        }

    # ---- check runs -------------------------------------------------------------------------------------------------

    def check(self, repository: Repository, check: CheckRun) -> Json:
        """check-run"""
        url = f"{self.api}/repos/{repository.full_name}/check-runs/{check.id}"
        web = f"{self.web}/{repository.full_name}/runs/{check.id}"
        said, output = check.fields, check.fields.get("output") or {}
        return {
            "id": check.id,
            "name": said["name"],
            "node_id": node_id("CheckRun", check.id),
            "head_sha": check.head_sha,
            "external_id": said.get("external_id", ""),
            "url": url,
            "html_url": web,
            "details_url": said.get("details_url") or web,
            "status": said["status"],
            "conclusion": said.get("conclusion"),
            "started_at": said.get("started_at"),
            "completed_at": said.get("completed_at"),
            "output": {
                "title": output.get("title"),
                "summary": output.get("summary"),
                "text": output.get("text"),
                "annotations_count": len(check.annotations),
                "annotations_url": f"{url}/annotations",
            },
            "check_suite": {"id": check.suite_id},
            "app": self.app(check.app),
            "pull_requests": [
                self._link(repository, pull) for pull in repository.pulls.values() if pull.head_sha == check.head_sha
            ],
        }

    def _link(self, repository: Repository, pull: Pull) -> Json:
        """pull-request-minimal"""
        url = f"{self.api}/repos/{repository.full_name}"
        repo = {"id": repository.id, "url": url, "name": repository.name}
        return {
            "id": pull.id,
            "number": pull.number,
            "url": f"{url}/pulls/{pull.number}",
            "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": repo},
            "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": repo},
        }

    # ---- workflows --------------------------------------------------------------------------------------------------

    def run(self, repository: Repository, run: WorkflowRun) -> Json:
        """workflow-run"""
        url, web = f"{self.api}/repos/{repository.full_name}", f"{self.web}/{repository.full_name}"
        this = f"{url}/actions/runs/{run.id}"
        links = {"jobs": "jobs", "logs": "logs", "artifacts": "artifacts", "cancel": "cancel", "rerun": "rerun"}
        at, actor, place = iso(run.created_at), self.user(run.actor), self.repository(repository)
        return {
            "id": run.id,
            "name": run.title,
            "node_id": node_id("WorkflowRun", run.id),
            "head_branch": run.ref,
            "head_sha": run.head_sha,
            "path": f".github/workflows/{run.workflow}",
            "display_title": run.title,
            "run_number": 1 + repository.runs.index(run),
            "run_attempt": 1,
            "event": "workflow_dispatch",
            "status": run.status,
            "conclusion": run.conclusion,
            "workflow_id": repository.id,
            "url": this,
            "html_url": f"{web}/actions/runs/{run.id}",
            "pull_requests": [],
            **dict.fromkeys(("created_at", "updated_at", "run_started_at"), at),
            **dict.fromkeys(("actor", "triggering_actor"), actor),
            **{f"{name}_url": f"{this}/{path}" for name, path in links.items()},
            "check_suite_url": f"{url}/check-suites/{run.job_id}",
            "workflow_url": f"{url}/actions/workflows/{run.workflow}",
            "head_commit": None,
            **dict.fromkeys(("repository", "head_repository"), place),
        }

    def job(self, repository: Repository, run: WorkflowRun) -> Json:
        """job"""
        url = f"{self.api}/repos/{repository.full_name}"
        at, web = iso(run.created_at), f"{self.web}/{repository.full_name}"
        return {
            "id": run.job_id,
            "run_id": run.id,
            "run_url": f"{url}/actions/runs/{run.id}",
            "node_id": node_id("CheckRun", run.job_id),
            "head_sha": run.head_sha,
            "head_branch": run.ref,
            "url": f"{url}/actions/jobs/{run.job_id}",
            "html_url": f"{web}/actions/runs/{run.id}/job/{run.job_id}",
            "check_run_url": f"{url}/check-runs/{run.job_id}",
            "status": run.status,
            "conclusion": run.conclusion,
            **dict.fromkeys(("created_at", "started_at"), at),
            "completed_at": at if run.conclusion else None,
            "name": "lease",
            "workflow_name": run.workflow,
            "steps": [
                {"name": name, "status": "completed", "conclusion": conclusion, "number": number}
                for number, (name, conclusion) in enumerate(run.steps, 1)
            ],
            "labels": [run.label],
            "runner_id": None if run.runner is None else 1,
            "runner_name": run.runner,
            "runner_group_id": None if run.runner is None else 1,
            "runner_group_name": None if run.runner is None else "Default",
        }
