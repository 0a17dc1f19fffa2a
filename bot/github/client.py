"""All that we say to GitHub, one method per call. Returns our nouns, never GitHub's JSON, except for messages.

Errors: `Gone` when the thing is not there (404, 410), `Denied` for 403, gidgethub's own for what may pass
(5xx, 422, 429, a limit of calls).
"""

import base64
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import gidgethub
from aiohttp import ClientSession
from gidgethub.aiohttp import GitHubAPI

from bot.core.nouns import Permission, Person
from bot.github.answers import CommitFacts, MergedPull, commit_of, merged_pull_of, person_of
from bot.github.auth import AppKey

AGENT = "benchbot"


class Gone(Exception):
    """GitHub has no such thing, or it is locked away for good (404, 410)."""


class Denied(Exception):
    """We may not do this (403): a missing permission, a locked conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A repository as GitHub's API addresses it, with the installation whose token opens it."""

    repository_id: int
    installation_id: int

    @property
    def path(self) -> str:
        """By id: a renamed repository keeps it, and a newcomer under the old name never inherits it."""
        return f"/repositories/{self.repository_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullFacts:
    """What GitHub says of a pull request now. `head_repository_id` is None when the fork was deleted."""

    number: int
    title: str
    open: bool
    head_sha: str
    head_repository_id: int | None
    base_ref: str
    author: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two commits: the tip of the base as it was resolved, and where the head left it."""

    base_sha: str
    merge_base_sha: str
    paths: tuple[str, ...]


class _Api(GitHubAPI):
    """gidgethub on aiohttp, without following redirects: a moved POST must stay a POST."""

    # the Date of the last answer, and when it came by our own clock
    dated: tuple[str, float] = ("", 0.0)

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with self._session.request(
            method, url, headers=dict(headers), data=body, allow_redirects=False
        ) as response:
            self.dated = (response.headers.get("Date", ""), time.time())
            moved = response.headers.get("Location", "")
            # only within the same server: the token in the headers is for nobody else
            if response.status in (301, 302, 307, 308) and moved.startswith(f"{self.base_url}/"):
                return await self._request(method, moved, headers, body)
            return response.status, response.headers, await response.read()


class GitHub:
    """GitHub for one App. Every method may raise Gone, Denied, or `gidgethub.GitHubException` for what may pass."""

    def __init__(self, session: ClientSession, key: AppKey) -> None:
        self._api = _Api(session, AGENT, base_url=key.api_url)
        self._key = key
        self._installations: dict[str, int] = {}
        self._login = ""

    # ---- facts ----------------------------------------------------------------------------------------------------

    async def permission(self, where: Where, login: str) -> Permission:
        """The right of an account on the repository; `none` when it has nothing to do with it."""
        try:
            answer = await self._get(where, f"/collaborators/{quote(login)}/permission")
        except Gone:
            return "none"
        name: Any = answer.get("role_name") or answer["permission"]
        plain: Permission = answer["permission"]
        return name if name in ("admin", "maintain", "write", "triage", "read") else plain

    async def pull(self, where: Where, number: int) -> PullFacts:
        """The pull request as it is now."""
        answer = await self._get(where, f"/pulls/{number}")
        head_repository = answer["head"].get("repo")
        return PullFacts(
            number=number,
            title=answer["title"],
            open=answer["state"] == "open",
            head_sha=answer["head"]["sha"],
            head_repository_id=head_repository["id"] if head_repository else None,
            base_ref=answer["base"]["ref"],
            author=person_of(answer.get("user")),
        )

    async def compare(self, where: Where, base: str, head: str) -> Compared:
        """Merge base of two commits or refs, and the files changed since (at most 300)."""
        answer = await self._get(where, f"/compare/{quote(base, safe='/')}...{quote(head, safe='/')}")
        return Compared(
            base_sha=answer["base_commit"]["sha"],
            merge_base_sha=answer["merge_base_commit"]["sha"],
            paths=tuple(file["filename"] for file in answer.get("files") or ()),
        )

    async def commit(self, where: Where, ref: str) -> str:
        """The commit that a branch, tag or (shortened) sha names."""
        return str((await self._get(where, f"/commits/{quote(ref, safe='')}"))["sha"])

    async def commit_of(self, full_name: str, ref: str, where: Where) -> str:
        """The commit of a ref in another repository, which must be public or within our installation's reach."""
        token = await self.installation_token(where.installation_id)
        path = f"/repos/{quote(full_name, safe='/')}/commits/{quote(ref, safe='')}"
        with _our_errors():
            return str((await self._api.getitem(path, oauth_token=token))["sha"])

    async def branch(self, where: Where, name: str) -> str:
        """The commit at the tip of a branch; Gone when there is no such branch."""
        return str((await self._get(where, f"/branches/{quote(name, safe='')}"))["commit"]["sha"])

    async def commits(self, where: Where, ref: str) -> AsyncIterator[CommitFacts]:
        """All commits that a ref leads to, newest first; whoever has seen enough stops asking."""
        async for commit in self._iterate(where, f"/commits?sha={quote(ref, safe='')}&per_page=100"):
            yield commit_of(commit)

    async def pull_of_commit(self, where: Where, sha: str) -> MergedPull | None:
        """The merged pull request by which a commit came to its branch; None for one that was pushed."""
        pulls = await self._get(where, f"/commits/{sha}/pulls?per_page=100")
        merged = [pull for pull in pulls if pull.get("merged_at")]
        # a commit may stand in several; the one that it is the merge of goes first
        merged.sort(key=lambda pull: pull.get("merge_commit_sha") != sha)
        return merged_pull_of(merged[0]) if merged else None

    async def latest_release(self, where: Where) -> str:
        """The tag of the latest release; Gone when there is none."""
        return str((await self._get(where, "/releases/latest"))["tag_name"])

    async def file(self, where: Where, path: str, ref: str) -> str | None:
        """A text file at a commit, None when there is none: nothing, a folder, a submodule, a link that leads nowhere.

        Bytes that are not UTF-8 are replaced.
        """
        try:
            answer = await self._get(where, f"/contents/{quote(path)}?ref={quote(ref)}")
        except Gone:
            return None
        if not isinstance(answer, dict) or answer.get("type") != "file":
            return None
        return base64.b64decode(answer["content"]).decode("utf-8", "replace")

    async def changed_files(self, where: Where, number: int) -> tuple[str, ...]:
        """Paths that the pull request touches."""
        return tuple([file["filename"] async for file in self._iterate(where, f"/pulls/{number}/files?per_page=100")])

    async def pulls_with_head(self, where: Where, sha: str) -> tuple[int, ...]:
        """Open pull requests whose head is this commit."""
        pulls = await self._get(where, f"/commits/{sha}/pulls")
        return tuple(pull["number"] for pull in pulls if pull["state"] == "open" and pull["head"]["sha"] == sha)

    async def repository(self, where: Where) -> Mapping[str, Any]:
        """id, full_name, private and default_branch as they are now."""
        answer: Mapping[str, Any] = await self._get(where, "")
        return answer

    # ---- what we show ---------------------------------------------------------------------------------------------

    async def react(self, where: Where, comment_id: int, content: str) -> None:
        """Our reaction on an issue comment; a second time changes nothing."""
        await self._send(where, "POST", f"/issues/comments/{comment_id}/reactions", {"content": content})

    async def create_comment(self, where: Where, number: int, body: str) -> int:
        """A new comment; its id."""
        return int((await self._send(where, "POST", f"/issues/{number}/comments", {"body": body}))["id"])

    async def update_comment(self, where: Where, comment_id: int, body: str) -> None:
        """Replace the text of our comment."""
        await self._send(where, "PATCH", f"/issues/comments/{comment_id}", {"body": body})

    async def find_comment(self, where: Where, number: int, marker: str, since: str) -> int | None:
        """Our own comment that holds `marker`, written since an ISO time; never somebody else's copy of it."""
        path = f"/issues/{number}/comments?per_page=100&since={quote(since)}"
        async for comment in self._iterate(where, path):
            app = comment.get("performed_via_github_app") or {}
            if app.get("id") == self._key.app_id and marker in (comment.get("body") or ""):
                return int(comment["id"])
        return None

    async def create_issue(self, where: Where, issue: Mapping[str, Any]) -> int:
        """A new issue from `title`, `body` and `labels`; its number."""
        wanted = {key: issue[key] for key in ("title", "body", "labels") if key in issue}
        return int((await self._send(where, "POST", "/issues", wanted))["number"])

    async def update_issue(self, where: Where, number: int, issue: Mapping[str, Any]) -> None:
        """Change what is given of `title`, `body`, `state`, `state_reason` and `labels` (all of them are replaced)."""
        await self._send(where, "PATCH", f"/issues/{number}", issue)

    async def find_issue(self, where: Where, marker: str, labels: str = "") -> int | None:
        """The newest issue of our App that holds `marker`, open or closed; never somebody else's copy of it.

        `labels`, separated by commas, make the search shorter where issues are many.
        """
        login = await self._own_login()
        query = f"creator={quote(login, safe='')}&state=all&per_page=100"
        if labels:
            query += f"&labels={quote(labels)}"
        async for issue in self._iterate(where, f"/issues?{query}"):
            ours = (issue.get("user") or {}).get("login") == login and not issue.get("pull_request")
            if ours and marker in (issue.get("body") or ""):
                return int(issue["number"])
        return None

    async def _own_login(self) -> str:
        """The login of the App's bot user, asked once."""
        if not self._login:
            self._login = f"{(await self.app())['slug']}[bot]"
        return self._login

    async def create_check(self, where: Where, check: Mapping[str, Any]) -> int:
        """A new check run; its id."""
        return int((await self._send(where, "POST", "/check-runs", check))["id"])

    async def update_check(self, where: Where, check_id: int, check: Mapping[str, Any]) -> None:
        """Change our check run."""
        changes = {key: value for key, value in check.items() if key != "head_sha"}
        await self._send(where, "PATCH", f"/check-runs/{check_id}", changes)

    async def find_check(self, where: Where, sha: str, name: str, external_id: str) -> int | None:
        """Our check run on a commit, by the id that we gave it."""
        query = f"check_name={quote(name)}&app_id={self._key.app_id}&filter=all&per_page=100"
        async for check in self._iterate(where, f"/commits/{sha}/check-runs?{query}", "check_runs"):
            if check.get("external_id") == external_id:
                return int(check["id"])
        return None

    # ---- the App itself -------------------------------------------------------------------------------------------

    @property
    def dated(self) -> tuple[str, float]:
        """The Date of GitHub's last answer as it was sent, and when it came by our own clock."""
        return self._api.dated

    async def app(self) -> Mapping[str, Any]:
        """slug, name, owner, permissions and events of the App, as it is registered now."""
        return await self._of_app("/app")

    async def hook(self) -> Mapping[str, Any]:
        """url, content_type, insecure_ssl and (hidden) secret of the App's webhook."""
        return await self._of_app("/app/hook/config")

    async def installations(self) -> AsyncIterator[Mapping[str, Any]]:
        """Where the App is installed, with the permissions that were granted there."""
        with _our_errors():
            async for installation in self._api.getiter("/app/installations?per_page=100", jwt=self._key.app_token()):
                yield installation

    async def deliveries(self) -> AsyncIterator[Mapping[str, Any]]:
        """Webhook deliveries that GitHub has tried, newest first."""
        with _our_errors():
            async for delivery in self._api.getiter("/app/hook/deliveries?per_page=100", jwt=self._key.app_token()):
                yield delivery

    async def redeliver(self, delivery_id: int) -> None:
        """Ask GitHub to send a delivery once more."""
        path = f"/app/hook/deliveries/{delivery_id}/attempts"
        with _our_errors():
            await self._api.post(path, data={}, jwt=self._key.app_token())

    async def installation_token(self, installation_id: int) -> str:
        """A token of the installation, for the API and for git over HTTP."""
        known = self._key.known(installation_id)
        if known:
            return known
        path = f"/app/installations/{installation_id}/access_tokens"
        with _our_errors():
            answer = await self._api.post(path, data={}, jwt=self._key.app_token())
        self._key.keep(installation_id, answer["token"], 3600)
        return str(answer["token"])

    # ---- repositories by name, for backends that live on GitHub ---------------------------------------------------

    async def ask(self, method: str, full_name: str, path: str, data: Mapping[str, Any]) -> Any:
        """One GET or POST below a repository that the App is installed on; GitHub's JSON as it is."""
        installation_id = await self.installation_of(full_name)
        url = f"/repos/{quote(full_name, safe='/')}{path}"
        try:
            token = await self.installation_token(installation_id)
            with self._errors_of(installation_id):
                if method == "GET":
                    return await self._api.getitem(url, oauth_token=token)
                return await self._api.post(url, data=dict(data), oauth_token=token)
        except Gone:
            # it may be another installation by now
            self._installations.pop(full_name, None)
            raise

    async def installation_of(self, full_name: str) -> int:
        """The installation that reaches a repository; Gone when there is none."""
        if full_name not in self._installations:
            with _our_errors():
                found = await self._api.getitem(
                    f"/repos/{quote(full_name, safe='/')}/installation", jwt=self._key.app_token()
                )
            self._installations[full_name] = int(found["id"])
        return self._installations[full_name]

    # ---- one way in and out ---------------------------------------------------------------------------------------

    async def _of_app(self, path: str) -> Mapping[str, Any]:
        with _our_errors():
            answer: Mapping[str, Any] = await self._api.getitem(path, jwt=self._key.app_token())
        return answer

    async def _get(self, where: Where, path: str) -> Any:
        token = await self.installation_token(where.installation_id)
        with self._errors_of(where.installation_id):
            return await self._api.getitem(where.path + path, oauth_token=token)

    async def _iterate(self, where: Where, path: str, key: str = "items") -> AsyncIterator[Mapping[str, Any]]:
        token = await self.installation_token(where.installation_id)
        with self._errors_of(where.installation_id):
            async for item in self._api.getiter(where.path + path, oauth_token=token, iterable_key=key):
                yield item

    async def _send(self, where: Where, method: str, path: str, data: Mapping[str, Any]) -> Any:
        token = await self.installation_token(where.installation_id)
        call = self._api.post if method == "POST" else self._api.patch
        with self._errors_of(where.installation_id):
            return await call(where.path + path, data=dict(data), oauth_token=token)

    @contextmanager
    def _errors_of(self, installation_id: int) -> Iterator[None]:
        """Our errors; a token that was refused is forgotten, and the call may be made again with a new one."""
        try:
            with _our_errors():
                yield
        except gidgethub.HTTPException as error:
            if error.status_code == 401:
                self._key.forget(installation_id)
            raise


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except gidgethub.RateLimitExceeded:
        raise
    except gidgethub.HTTPException as error:
        if error.status_code in (404, 410):
            raise Gone(str(error)) from error
        if error.status_code == 403 and not _too_fast(error):
            raise Denied(str(error)) from error
        raise


def _too_fast(error: gidgethub.HTTPException) -> bool:
    """Whether a 403 is one of GitHub's secondary limits, which pass by themselves."""
    return "Retry-After" in error.headers or "rate limit" in str(error).lower()
