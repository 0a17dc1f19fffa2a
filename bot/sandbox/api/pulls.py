"""Pull requests and their reviews."""

from typing import Any

from aiohttp import web

from bot.sandbox import bare
from bot.sandbox.api.base import Call, Routes
from bot.sandbox.issue_acts import Wanted
from bot.sandbox.state import Problem, Pull, invalid, pull_of

ROUTES = Routes()
_READ, _WRITE = "pull_requests:read", "pull_requests:write"


async def _whole(call: Call, pull: Pull) -> dict[str, Any]:
    files = await call.hub.acts.files(call.repository, pull)
    commits = await bare.commits_between(call.repository.folder, pull.base_sha, pull.head_sha)
    return call.hub.shapes.whole_pull(call.repository, pull, files, len(commits))


@ROUTES.below("GET", "/pulls", _READ)
async def list_pulls(call: Call) -> web.StreamResponse:
    """Open ones by default, newest first."""
    state = call.request.query.get("state", "open")
    pulls = [pull for pull in call.repository.pulls.values() if state == "all" or pull.open == (state == "open")]
    return call.page(pulls[::-1], lambda pull: call.hub.shapes.pull(call.repository, pull))


@ROUTES.below("POST", "/pulls", _WRITE)
async def create_pull(call: Call) -> web.StreamResponse:
    """From a branch of this repository, or `owner:branch` of a fork of it."""
    sent = await call.body()
    owner, _, branch = str(sent.get("head", "")).rpartition(":")
    source = call.repository
    if owner and owner != call.repository.owner.login:
        forks = [fork for fork in call.hub.state.repositories.values() if fork.parent is call.repository]
        found = [fork for fork in forks if fork.owner.login == owner]
        if not found:
            raise invalid("PullRequest", "head", "is not a branch of this repository or of a fork")
        source = found[0]
    title, body = str(sent.get("title") or ""), str(sent.get("body") or "")
    try:
        pull = await call.hub.acts.open_pull(
            call.repository, call.who, title, body, head=(source, branch), base=str(sent.get("base") or "")
        )
    except Problem:
        raise invalid("PullRequest", "head", "or base is not a branch") from None
    return web.json_response(await _whole(call, pull), status=201)


@ROUTES.below("GET", "/pulls/{number}", _READ)
async def show_pull(call: Call) -> web.StreamResponse:
    """All of it."""
    return web.json_response(await _whole(call, pull_of(call.repository, call.number("number"))))


@ROUTES.below("PATCH", "/pulls/{number}", _WRITE)
async def update_pull(call: Call) -> web.StreamResponse:
    """Close, reopen, another title or text."""
    pull, sent = pull_of(call.repository, call.number("number")), await call.body()
    title, body, state = (None if sent.get(name) is None else str(sent[name]) for name in ("title", "body", "state"))
    wanted = Wanted(title=title, body=body, state=state)
    await call.hub.acts.update(call.repository, pull.number, call.actor, wanted)
    return web.json_response(await _whole(call, pull))


@ROUTES.below("GET", "/pulls/{number}/files", _READ)
async def list_files(call: Call) -> web.StreamResponse:
    """What it changes."""
    pull = pull_of(call.repository, call.number("number"))
    files = await call.hub.acts.files(call.repository, pull)
    return call.page(files, lambda file: call.hub.shapes.changed(call.repository, file, pull.head_sha))


@ROUTES.below("PUT", "/pulls/{number}/merge", "contents:write", right="write")
async def merge(call: Call) -> web.StreamResponse:
    """A merge commit on the base branch, or one commit of all changes."""
    pull, sent = pull_of(call.repository, call.number("number")), await call.body()
    method = sent.get("merge_method") or "merge"
    if method not in ("merge", "squash"):
        raise Problem(405, "Rebase merges are not allowed on this repository.")
    if not pull.open:
        raise Problem(405, "Pull Request is not mergeable")
    if sent.get("sha") not in (None, pull.head_sha):
        raise Problem(409, "Head branch was modified. Review and try the merge again.")
    try:
        await call.hub.acts.close(call.repository, pull.number, call.who, merge=True, squash=method == "squash")
    except bare.GitFailedError:
        raise Problem(405, "Pull Request is not mergeable") from None
    return web.json_response({"sha": pull.merge_sha, "merged": True, "message": "Pull Request successfully merged"})


@ROUTES.below("GET", "/pulls/{number}/reviews", _READ)
async def list_reviews(call: Call) -> web.StreamResponse:
    """Oldest first."""
    pull = pull_of(call.repository, call.number("number"))
    return call.page(pull.reviews, lambda review: call.hub.shapes.review(call.repository, pull, review))


@ROUTES.below("POST", "/pulls/{number}/reviews", _WRITE)
async def create_review(call: Call) -> web.StreamResponse:
    """A review that is submitted at once."""
    number, sent = call.number("number"), await call.body()
    event, body, commit = (str(sent.get(name) or "") for name in ("event", "body", "commit_id"))
    review = call.hub.acts.review(call.repository, number, call.who, event, body, commit)
    return web.json_response(call.hub.shapes.review(call.repository, pull_of(call.repository, number), review))


@ROUTES.below("PUT", "/pulls/{number}/reviews/{review_id}/dismissals", _WRITE, right="write")
async def dismiss_review(call: Call) -> web.StreamResponse:
    """Takes its weight away."""
    number, message = call.number("number"), str((await call.body()).get("message") or "")
    review = call.hub.acts.dismiss(call.repository, number, call.number("review_id"), call.who, message)
    return web.json_response(call.hub.shapes.review(call.repository, pull_of(call.repository, number), review))
