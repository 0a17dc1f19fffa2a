"""JSON as GitHub's REST API gives it, one method per kind of thing. The tests check it against GitHub's description."""

import base64
from typing import Any
from urllib.parse import quote

from bot.sandbox import bare
from bot.sandbox.state import Account, App, CheckRun, Comment, Installation, Pull, Reaction, Repository, Review, iso

API = "/api/v3"
Json = dict[str, Any]

_USER_LINKS = ("followers", "subscriptions", "organizations", "repos", "received_events")
_REPOSITORY_LINKS = (
    "contributors",
    "deployments",
    "downloads",
    "events",
    "forks",
    "hooks",
    "languages",
    "merges",
    "stargazers",
    "subscribers",
    "subscription",
    "tags",
    "teams",
)
_REPOSITORY_TEMPLATES = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "statuses_url": "/statuses/{sha}",
    "trees_url": "/git/trees{/sha}",
}


class Shapes:
    """Renders state for one origin, such as `http://127.0.0.1:8000`."""

    def __init__(self, origin: str) -> None:
        self.web = origin
        self.api = origin + API

    # ---- who ------------------------------------------------------------------------------------------------------

    def user(self, account: Account) -> Json:
        """simple-user"""
        url = f"{self.api}/users/{quote(account.login)}"
        return {
            "login": account.login,
            "id": account.id,
            "node_id": _node("User", account.id),
            "avatar_url": f"{self.web}/avatars/{account.id}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.web}/{quote(account.login)}",
            **{f"{name}_url": f"{url}/{name}" for name in _USER_LINKS},
            "following_url": f"{url}/following{{/other_user}}",
            "gists_url": f"{url}/gists{{/gist_id}}",
            "starred_url": f"{url}/starred{{/owner}}{{/repo}}",
            "events_url": f"{url}/events{{/privacy}}",
            "type": account.kind,
            "site_admin": False,
            "user_view_type": "public",
        }

    def app(self, app: App) -> Json:
        """integration"""
        return {
            "id": app.id,
            "slug": app.slug,
            "node_id": _node("App", app.id),
            "client_id": f"Iv1.{app.id:016x}",
            "owner": self.user(app.owner),
            "name": app.name,
            "description": "",
            "external_url": self.web,
            "html_url": f"{self.web}/apps/{app.slug}",
            "created_at": iso(app.created_at),
            "updated_at": iso(app.created_at),
            "permissions": dict(app.permissions),
            "events": list(app.events),
        }

    def installation(self, installation: Installation) -> Json:
        """installation"""
        url = f"{self.api}/app/installations/{installation.id}"
        return {
            "id": installation.id,
            "account": self.user(installation.account),
            "repository_selection": "all",
            "access_tokens_url": f"{url}/access_tokens",
            "repositories_url": f"{self.api}/installation/repositories",
            "html_url": f"{self.web}/settings/installations/{installation.id}",
            "app_id": installation.app.id,
            "client_id": f"Iv1.{installation.app.id:016x}",
            "app_slug": installation.app.slug,
            "target_id": installation.account.id,
            "target_type": installation.account.kind,
            "permissions": dict(installation.app.permissions),
            "events": list(installation.app.events),
            "created_at": iso(installation.created_at),
            "updated_at": iso(installation.created_at),
            "single_file_name": None,
            "has_multiple_single_files": False,
            "single_file_paths": [],
            "suspended_by": None,
            "suspended_at": None,
        }

    # ---- repositories and commits -----------------------------------------------------------------------------------

    def repository(self, repository: Repository) -> Json:
        """full-repository; its fields serve wherever a smaller one is asked for."""
        url = f"{self.api}/repos/{repository.full_name}"
        web = f"{self.web}/{repository.full_name}"
        opened = sum(pull.open for pull in repository.pulls.values())
        times = dict.fromkeys(("created_at", "updated_at", "pushed_at"), iso(repository.created_at))
        zeros = ("forks", "forks_count", "watchers", "watchers_count", "stargazers_count", "size")
        switches = ("has_issues", "has_projects", "has_wiki", "has_pages", "has_discussions", "has_downloads")
        others = ("archived", "disabled")
        return {
            "id": repository.id,
            "node_id": _node("Repository", repository.id),
            "name": repository.name,
            "full_name": repository.full_name,
            "owner": self.user(repository.owner),
            "private": repository.private,
            "visibility": "private" if repository.private else "public",
            "html_url": web,
            "description": None,
            "fork": repository.parent is not None,
            "url": url,
            **{f"{name}_url": f"{url}/{name}" for name in _REPOSITORY_LINKS},
            **{name: url + path for name, path in _REPOSITORY_TEMPLATES.items()},
            "clone_url": f"{web}.git",
            "git_url": f"git:{web.partition(':')[2]}.git",
            "ssh_url": f"git@{self.web.partition('//')[2]}:{repository.full_name}.git",
            "svn_url": web,
            "mirror_url": None,
            "homepage": None,
            "language": None,
            "license": None,
            "default_branch": repository.default_branch,
            **times,
            **dict.fromkeys(zeros, 0),
            "network_count": 0,
            "subscribers_count": 0,
            "open_issues": opened,
            "open_issues_count": opened,
            **dict.fromkeys((*switches, *others), False),
            "topics": [],
            "is_template": False,
            "allow_forking": True,
            "web_commit_signoff_required": False,
        }

    def commit(self, repository: Repository, commit: bare.Commit) -> Json:
        """commit"""
        url = f"{self.api}/repos/{repository.full_name}"
        web = f"{self.web}/{repository.full_name}/commit"
        parents = [{"sha": sha, "url": f"{url}/commits/{sha}", "html_url": f"{web}/{sha}"} for sha in commit.parents]
        return {
            "sha": commit.sha,
            "node_id": f"C_{commit.sha[:20]}",
            "url": f"{url}/commits/{commit.sha}",
            "html_url": f"{web}/{commit.sha}",
            "comments_url": f"{url}/commits/{commit.sha}/comments",
            "commit": {
                "url": f"{url}/git/commits/{commit.sha}",
                "author": _signature(commit.author),
                "committer": _signature(commit.committer),
                "message": commit.message,
                "tree": {"sha": commit.tree, "url": f"{url}/git/trees/{commit.tree}"},
                "comment_count": 0,
            },
            # mail addresses are not matched with accounts here
            "author": None,
            "committer": None,
            "parents": parents,
        }

    def changed(self, repository: Repository, file: bare.Changed, head: str) -> Json:
        """diff-entry, without the patch."""
        web, path = f"{self.web}/{repository.full_name}", quote(file.path)
        shape = {
            "sha": file.blob,
            "filename": file.path,
            "status": file.status,
            "additions": file.additions,
            "deletions": file.deletions,
            "changes": file.additions + file.deletions,
            "blob_url": f"{web}/blob/{head}/{path}",
            "raw_url": f"{web}/raw/{head}/{path}",
            "contents_url": f"{self.api}/repos/{repository.full_name}/contents/{path}?ref={head}",
        }
        return shape | ({"previous_filename": file.previous} if file.previous else {})

    def content(self, repository: Repository, path: str, ref: str, blob: tuple[str, bytes]) -> Json:
        """content-file"""
        sha, raw = blob
        web, place = f"{self.web}/{repository.full_name}", quote(path)
        url = f"{self.api}/repos/{repository.full_name}"
        this, git, html = f"{url}/contents/{place}?ref={ref}", f"{url}/git/blobs/{sha}", f"{web}/blob/{ref}/{place}"
        return {
            "type": "file",
            "encoding": "base64",
            "size": len(raw),
            "name": path.rpartition("/")[2],
            "path": path,
            "content": base64.encodebytes(raw).decode(),
            "sha": sha,
            "url": this,
            "git_url": git,
            "html_url": html,
            "download_url": f"{web}/raw/{ref}/{place}",
            "_links": {"self": this, "git": git, "html": html},
        }

    def release(self, repository: Repository, release: tuple[int, str, float]) -> Json:
        """release"""
        number, tag, at = release
        url, web = f"{self.api}/repos/{repository.full_name}", f"{self.web}/{repository.full_name}"
        return {
            "id": number,
            "node_id": _node("Release", number),
            "url": f"{url}/releases/{number}",
            "assets_url": f"{url}/releases/{number}/assets",
            "upload_url": f"{url}/releases/{number}/assets{{?name,label}}",
            "html_url": f"{web}/releases/tag/{quote(tag)}",
            "tarball_url": f"{url}/tarball/{quote(tag)}",
            "zipball_url": f"{url}/zipball/{quote(tag)}",
            "tag_name": tag,
            "target_commitish": repository.default_branch,
            "name": tag,
            "body": "",
            "draft": False,
            "prerelease": False,
            "created_at": iso(at),
            "published_at": iso(at),
            "author": self.user(repository.owner),
            "assets": [],
        }

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
            "node_id": _node("PullRequest", pull.id),
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
            "merge_commit_sha": None,
            "assignee": None,
            "assignees": [],
            "requested_reviewers": [],
            "requested_teams": [],
            "labels": [],
            "milestone": None,
            "draft": False,
            "head": self._end(pull.head_repository, pull.head_ref, pull.head_sha, pull.author),
            "base": self._end(repository, pull.base_ref, pull.base_sha, repository.owner),
            "_links": {name: {"href": link} for name, link in links.items()},
            "author_association": _association(repository, pull.author),
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
            "merged_by": self.user(repository.owner) if pull.merged else None,
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

    def issue(self, repository: Repository, pull: Pull) -> Json:
        """A pull request as the issue that its conversation is."""
        url = f"{self.api}/repos/{repository.full_name}/issues/{pull.number}"
        web = f"{self.web}/{repository.full_name}/pull/{pull.number}"
        return {
            "url": url,
            "repository_url": f"{self.api}/repos/{repository.full_name}",
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "timeline_url": f"{url}/timeline",
            "html_url": web,
            "id": pull.id,
            "node_id": _node("PullRequest", pull.id),
            "number": pull.number,
            "title": pull.title,
            "user": self.user(pull.author),
            "labels": [],
            "state": "open" if pull.open else "closed",
            "locked": pull.locked,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": len(pull.comments),
            "created_at": iso(pull.created_at),
            "updated_at": iso(pull.updated_at),
            "closed_at": None if pull.closed_at is None else iso(pull.closed_at),
            "author_association": _association(repository, pull.author),
            "active_lock_reason": None,
            "draft": False,
            "pull_request": {
                "url": f"{self.api}/repos/{repository.full_name}/pulls/{pull.number}",
                "html_url": web,
                "diff_url": f"{web}.diff",
                "patch_url": f"{web}.patch",
                "merged_at": iso(pull.closed_at) if pull.merged and pull.closed_at else None,
            },
            "body": pull.body,
            "reactions": self._reactions(f"{url}/reactions", []),
            "performed_via_github_app": None,
            "state_reason": None,
        }

    def comment(self, repository: Repository, pull: Pull, comment: Comment) -> Json:
        """issue-comment"""
        url = f"{self.api}/repos/{repository.full_name}/issues"
        web = f"{self.web}/{repository.full_name}/pull/{pull.number}"
        return {
            "url": f"{url}/comments/{comment.id}",
            "html_url": f"{web}#issuecomment-{comment.id}",
            "issue_url": f"{url}/{pull.number}",
            "id": comment.id,
            "node_id": _node("IssueComment", comment.id),
            "user": self.user(comment.author),
            "created_at": iso(comment.created_at),
            "updated_at": iso(comment.updated_at),
            "author_association": _association(repository, comment.author),
            "body": comment.body,
            "reactions": self._reactions(f"{url}/comments/{comment.id}/reactions", comment.reactions),
            "performed_via_github_app": self.app(comment.app) if comment.app else None,
        }

    def reaction(self, reaction: Reaction) -> Json:
        """reaction"""
        return {
            "id": reaction.id,
            "node_id": _node("Reaction", reaction.id),
            "user": self.user(reaction.author),
            "content": reaction.content,
            "created_at": iso(reaction.created_at),
        }

    def _reactions(self, url: str, reactions: list[Reaction]) -> Json:
        signs = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
        counts = {sign: sum(reaction.content == sign for reaction in reactions) for sign in signs}
        return {"url": url, "total_count": len(reactions), **counts}

    def review(self, repository: Repository, pull: Pull, review: Review) -> Json:
        """pull-request-review"""
        web = f"{self.web}/{repository.full_name}/pull/{pull.number}#pullrequestreview-{review.id}"
        url = f"{self.api}/repos/{repository.full_name}/pulls/{pull.number}"
        return {
            "id": review.id,
            "node_id": _node("PullRequestReview", review.id),
            "user": self.user(review.author),
            "body": review.body,
            "state": review.state,
            "html_url": web,
            "pull_request_url": url,
            "author_association": _association(repository, review.author),
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
            "node_id": _node("CheckRun", check.id),
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


def _node(kind: str, number: int) -> str:
    return base64.b64encode(f"{kind}{number}".encode()).decode()


def _signature(who: bare.Signature) -> Json:
    return {"name": who.name, "email": who.email, "date": who.date}


def _association(repository: Repository, account: Account) -> str:
    if account is repository.owner:
        return "OWNER"
    return "COLLABORATOR" if account.login in repository.rights else "NONE"
