"""Issues, the comments of a conversation, and the signs on both."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from aiohttp import web

from bot.sandbox.api.base import Call, Routes
from bot.sandbox.issue_acts import Wanted
from bot.sandbox.state import Comment, Thread, comment_of, invalid, thread_of

ROUTES = Routes()
_READ = ("issues:read", "pull_requests:read")
_WRITE_ISSUES = ("issues:write",)
_WRITE = ("issues:write", "pull_requests:write")


@ROUTES.below("GET", "/issues", *_READ)
async def list_issues(call: Call) -> web.StreamResponse:
    """Issues and pull requests, open ones by default, newest first."""
    query, repository = call.request.query, call.repository
    unknown = [name for name in ("milestone", "assignee", "mentioned", "type", "issue_field_values") if name in query]
    if unknown:
        raise invalid("Issue", unknown[0], "is not kept by this local GitHub: leave it out")
    oldest = _time(query.get("since"), "Issue")
    wanted = {name for name in query.get("labels", "").split(",") if name}
    creator = query.get("creator", "").lower()
    if creator.startswith("app/"):
        creator = f"{creator.removeprefix('app/')}[bot]"
    state = query.get("state", "open")
    found = [
        thread
        for thread in repository.threads.values()
        if state in ("all", "open" if thread.open else "closed")
        and creator in ("", thread.author.login.lower())
        and wanted <= set(thread.labels)
        and thread.updated_at >= oldest
    ]
    keys: dict[str, Callable[[Thread], float]] = {
        "created": lambda thread: thread.number,
        "updated": lambda thread: thread.updated_at,
        "comments": lambda thread: len(thread.comments),
    }
    newest_first = query.get("direction", "desc") != "asc"
    found.sort(key=keys.get(query.get("sort", ""), keys["created"]), reverse=newest_first)
    return call.page(found, lambda thread: call.hub.shapes.issue(repository, thread))


@ROUTES.below("POST", "/issues", *_WRITE_ISSUES)
async def create_issue(call: Call) -> web.StreamResponse:
    """A new issue."""
    issue = call.hub.acts.open_issue(call.repository, call.actor, _wanted(await call.body()))
    shape = call.hub.shapes.issue(call.repository, issue)
    return web.json_response(shape, status=201, headers={"Location": shape["url"]})


@ROUTES.below("GET", "/issues/{number}", *_READ)
async def show_issue(call: Call) -> web.StreamResponse:
    """An issue, or a pull request as one."""
    return web.json_response(call.hub.shapes.issue(call.repository, thread_of(call.repository, call.number("number"))))


@ROUTES.below("PATCH", "/issues/{number}", *_WRITE)
async def update_issue(call: Call) -> web.StreamResponse:
    """Another title, text, state or other labels."""
    thread = await call.hub.acts.update(call.repository, call.number("number"), call.actor, _wanted(await call.body()))
    return web.json_response(call.hub.shapes.issue(call.repository, thread))


@ROUTES.below("GET", "/issues/{number}/reactions", *_READ)
async def list_issue_reactions(call: Call) -> web.StreamResponse:
    """The signs on what a conversation began with."""
    return _reactions(call, thread_of(call.repository, call.number("number")))


@ROUTES.below("POST", "/issues/{number}/reactions", *_WRITE)
async def create_issue_reaction(call: Call) -> web.StreamResponse:
    """201 for a new sign, 200 for one that is there."""
    return await _react(call, thread_of(call.repository, call.number("number")))


@ROUTES.below("GET", "/issues/{number}/comments", *_READ)
async def list_comments(call: Call) -> web.StreamResponse:
    """Oldest first; `since` leaves out what was last changed before."""
    thread = thread_of(call.repository, call.number("number"))
    oldest = _time(call.request.query.get("since"), "IssueComment")
    comments = [comment for comment in thread.comments if comment.updated_at >= oldest]
    return call.page(comments, lambda comment: call.hub.shapes.comment(call.repository, thread, comment))


@ROUTES.below("POST", "/issues/{number}/comments", *_WRITE)
async def create_comment(call: Call) -> web.StreamResponse:
    """A new comment."""
    app = call.caller.installation.app if call.caller.installation else None
    number = call.number("number")
    comment = call.hub.acts.comment(call.repository, number, call.who, _body(await call.body()), app)
    shape = call.hub.shapes.comment(call.repository, thread_of(call.repository, number), comment)
    return web.json_response(shape, status=201, headers={"Location": shape["url"]})


@ROUTES.below("GET", "/issues/comments/{comment_id}", *_READ)
async def show_comment(call: Call) -> web.StreamResponse:
    """One comment."""
    thread, comment = comment_of(call.repository, call.number("comment_id"))
    return web.json_response(call.hub.shapes.comment(call.repository, thread, comment))


@ROUTES.below("PATCH", "/issues/comments/{comment_id}", *_WRITE)
async def update_comment(call: Call) -> web.StreamResponse:
    """Another text."""
    thread, comment = comment_of(call.repository, call.number("comment_id"))
    call.hub.acts.edit(call.repository, thread, comment, call.who, _body(await call.body()))
    return web.json_response(call.hub.shapes.comment(call.repository, thread, comment))


@ROUTES.below("DELETE", "/issues/comments/{comment_id}", *_WRITE)
async def delete_comment(call: Call) -> web.StreamResponse:
    """Take it away."""
    thread, comment = comment_of(call.repository, call.number("comment_id"))
    call.hub.acts.delete(call.repository, thread, comment, call.who)
    return web.Response(status=204)


@ROUTES.below("GET", "/issues/comments/{comment_id}/reactions", *_READ)
async def list_reactions(call: Call) -> web.StreamResponse:
    """The signs on a comment."""
    return _reactions(call, comment_of(call.repository, call.number("comment_id"))[1])


@ROUTES.below("POST", "/issues/comments/{comment_id}/reactions", *_WRITE)
async def create_reaction(call: Call) -> web.StreamResponse:
    """201 for a new sign, 200 for one that is there."""
    return await _react(call, comment_of(call.repository, call.number("comment_id"))[1])


def _reactions(call: Call, target: Comment | Thread) -> web.StreamResponse:
    wanted = call.request.query.get("content")
    reactions = [reaction for reaction in target.reactions if wanted in (None, reaction.content)]
    return call.page(reactions, call.hub.shapes.reaction)


async def _react(call: Call, target: Comment | Thread) -> web.StreamResponse:
    reaction, new = call.hub.acts.react(target, call.who, str((await call.body()).get("content")))
    return web.json_response(call.hub.shapes.reaction(reaction), status=201 if new else 200)


def _wanted(sent: Mapping[str, Any]) -> Wanted:
    """What was sent about an issue; what this local GitHub does not keep is refused rather than lost."""
    unknown = set(sent) - {"title", "body", "state", "state_reason", "labels"}
    if unknown:
        raise invalid("Issue", min(unknown), "is not kept by this local GitHub: leave it out")
    if sent.get("state") not in (None, "open", "closed"):
        raise invalid("Issue", "state", "is neither open nor closed")
    labels = sent.get("labels")
    if labels is not None and not isinstance(labels, list):
        raise invalid("Issue", "labels", "is not a list")
    title, body = sent.get("title"), sent.get("body")
    return Wanted(
        title=None if title is None else str(title),
        # null empties the text, a missing field leaves it
        body=str(body or "") if "body" in sent else None,
        state=sent.get("state"),
        reason=sent.get("state_reason"),
        labels=None if labels is None else tuple(_label(each) for each in labels),
    )


def _label(sent: object) -> str:
    return str(sent.get("name", "")) if isinstance(sent, dict) else str(sent)


def _time(text: str | None, resource: str) -> float:
    """Seconds since the epoch, 0 for none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        raise invalid(resource, "since", "is not a time") from None


def _body(sent: dict[str, Any]) -> str:
    if not isinstance(sent.get("body"), str):
        raise invalid("IssueComment", "body", "is missing")
    return str(sent["body"])
