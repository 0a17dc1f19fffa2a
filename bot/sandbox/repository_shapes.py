"""JSON of accounts, Apps, repositories and commits, one method per kind of thing. See `shapes`."""

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from bot.sandbox import bare
from bot.sandbox.state import Account, App, Installation, Repository, iso

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


class RepositoryShapes:
    """Renders state for one origin, such as `http://127.0.0.1:8000`."""

    def __init__(self, origin: str, accounts: Mapping[str, Account]) -> None:
        self.web = origin
        self.api = origin + API
        self._accounts = accounts

    # ---- who ------------------------------------------------------------------------------------------------------

    def user(self, account: Account) -> Json:
        """simple-user"""
        url = f"{self.api}/users/{quote(account.login)}"
        return {
            "login": account.login,
            "id": account.id,
            "node_id": node_id("User", account.id),
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
            "node_id": node_id("App", app.id),
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
        opened = sum(thread.open for thread in repository.threads.values())
        times = dict.fromkeys(("created_at", "updated_at", "pushed_at"), iso(repository.created_at))
        zeros = ("forks", "forks_count", "watchers", "watchers_count", "stargazers_count", "size")
        switches = ("has_projects", "has_wiki", "has_pages", "has_discussions", "has_downloads")
        others = ("archived", "disabled")
        return {
            "id": repository.id,
            "node_id": node_id("Repository", repository.id),
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
            "has_issues": True,
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
            "author": self._user_of(commit.author),
            "committer": self._user_of(commit.committer),
            "parents": parents,
        }

    def _user_of(self, who: bare.Signature) -> Json | None:
        account = self._account_of(who)
        return None if account is None else self.user(account)

    def _account_of(self, who: bare.Signature) -> Account | None:
        """Everybody's mail address begins with the login here."""
        return self._accounts.get(who.email.partition("@")[0].lower())

    def pushed_commit(
        self, repository: Repository, commit: bare.Commit, files: list[tuple[str, str]], *, distinct: bool
    ) -> Json:
        """A commit in a `push` webhook; `files` as `bare.touched` tells them."""
        letters = {"added": "A", "removed": "D", "modified": "MT"}
        return {
            "id": commit.sha,
            "tree_id": commit.tree,
            "distinct": distinct,
            "message": commit.message,
            "timestamp": commit.committer.date,
            "url": f"{self.web}/{repository.full_name}/commit/{commit.sha}",
            "author": self._pushing(commit.author),
            "committer": self._pushing(commit.committer),
            **{name: [path for letter, path in files if letter in known] for name, known in letters.items()},
        }

    def _pushing(self, who: bare.Signature) -> Json:
        account = self._account_of(who)
        named = {"name": who.name, "email": who.email, "date": who.date}
        return named | ({"username": account.login} if account else {})

    def branch(self, repository: Repository, name: str, commit: bare.Commit) -> Json:
        """branch-with-protection"""
        url = f"{self.api}/repos/{repository.full_name}/branches/{quote(name, safe='')}"
        nothing = {"enforcement_level": "off", "contexts": [], "checks": []}
        return {
            "name": name,
            "commit": self.commit(repository, commit),
            "_links": {"self": url, "html": f"{self.web}/{repository.full_name}/tree/{quote(name)}"},
            "protected": False,
            "protection": {"enabled": False, "required_status_checks": nothing},
            "protection_url": f"{url}/protection",
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


def node_id(kind: str, number: int) -> str:
    """The id of the other API."""
    return base64.b64encode(f"{kind}{number}".encode()).decode()


def _signature(who: bare.Signature) -> Json:
    return {"name": who.name, "email": who.email, "date": iso(who.at)}


def association(repository: Repository, account: Account) -> str:
    """How an account belongs to a repository."""
    if account is repository.owner:
        return "OWNER"
    return "COLLABORATOR" if account.login in repository.rights else "NONE"
