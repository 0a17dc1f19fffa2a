"""Comments of the conversation and the signs on them."""

from datetime import datetime
from typing import Any

from aiohttp import web

from bot.sandbox.api.base import Call, Routes
from bot.sandbox.state import comment_of, invalid, pull_of

ROUTES = Routes()
_READ = ("issues:read", "pull_requests:read")
_WRITE = ("issues:write", "pull_requests:write")


@ROUTES.below("GET", "/issues/{number}", *_READ)
async def show_issue(call: Call) -> web.StreamResponse:
    """The pull request as an issue."""
    return web.json_response(call.hub.shapes.issue(call.repository, pull_of(call.repository, call.number("number"))))


@ROUTES.below("GET", "/issues/{number}/comments", *_READ)
async def list_comments(call: Call) -> web.StreamResponse:
    """Oldest first; `since` leaves out what was last changed before."""
    pull = pull_of(call.repository, call.number("number"))
    since = call.request.query.get("since")
    try:
        oldest = datetime.fromisoformat(since).timestamp() if since else 0.0
    except ValueError:
        raise invalid("IssueComment", "since", "is not a time") from None
    comments = [comment for comment in pull.comments if comment.updated_at >= oldest]
    return call.page(comments, lambda comment: call.hub.shapes.comment(call.repository, pull, comment))


@ROUTES.below("POST", "/issues/{number}/comments", *_WRITE)
async def create_comment(call: Call) -> web.StreamResponse:
    """A new comment."""
    app = call.caller.installation.app if call.caller.installation else None
    number = call.number("number")
    comment = call.hub.acts.comment(call.repository, number, call.who, _body(await call.body()), app)
    shape = call.hub.shapes.comment(call.repository, pull_of(call.repository, number), comment)
    return web.json_response(shape, status=201, headers={"Location": shape["url"]})


@ROUTES.below("GET", "/issues/comments/{comment_id}", *_READ)
async def show_comment(call: Call) -> web.StreamResponse:
    """One comment."""
    pull, comment = comment_of(call.repository, call.number("comment_id"))
    return web.json_response(call.hub.shapes.comment(call.repository, pull, comment))


@ROUTES.below("PATCH", "/issues/comments/{comment_id}", *_WRITE)
async def update_comment(call: Call) -> web.StreamResponse:
    """Another text."""
    pull, comment = comment_of(call.repository, call.number("comment_id"))
    call.hub.acts.edit(call.repository, pull, comment, call.who, _body(await call.body()))
    return web.json_response(call.hub.shapes.comment(call.repository, pull, comment))


@ROUTES.below("DELETE", "/issues/comments/{comment_id}", *_WRITE)
async def delete_comment(call: Call) -> web.StreamResponse:
    """Take it away."""
    pull, comment = comment_of(call.repository, call.number("comment_id"))
    call.hub.acts.delete(call.repository, pull, comment, call.who)
    return web.Response(status=204)


@ROUTES.below("GET", "/issues/comments/{comment_id}/reactions", *_READ)
async def list_reactions(call: Call) -> web.StreamResponse:
    """The signs on a comment."""
    _, comment = comment_of(call.repository, call.number("comment_id"))
    wanted = call.request.query.get("content")
    reactions = [reaction for reaction in comment.reactions if wanted in (None, reaction.content)]
    return call.page(reactions, call.hub.shapes.reaction)


@ROUTES.below("POST", "/issues/comments/{comment_id}/reactions", *_WRITE)
async def create_reaction(call: Call) -> web.StreamResponse:
    """201 for a new sign, 200 for one that is there."""
    _, comment = comment_of(call.repository, call.number("comment_id"))
    reaction, new = call.hub.acts.react(comment, call.who, str((await call.body()).get("content")))
    return web.json_response(call.hub.shapes.reaction(reaction), status=201 if new else 200)


def _body(sent: dict[str, Any]) -> str:
    if not isinstance(sent.get("body"), str):
        raise invalid("IssueComment", "body", "is missing")
    return str(sent["body"])
