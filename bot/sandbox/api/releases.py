"""Releases and tags."""

from typing import Any

from aiohttp import web

from bot.sandbox import bare
from bot.sandbox.api.base import Call, Routes
from bot.sandbox.release_acts import LATEST, Draft
from bot.sandbox.state import Release, invalid, not_found

ROUTES = Routes()
_READ, _WRITE = "contents:read", "contents:write"


@ROUTES.below("GET", "/releases", _READ)
async def list_releases(call: Call) -> web.StreamResponse:
    """Newest first; drafts only for whoever may write."""
    found = call.repository.published
    if call.caller.account is not None and call.actor.may(call.repository, "write"):
        found = [each for each in call.repository.releases[::-1] if each.draft] + found
    return call.page(found, lambda release: call.hub.shapes.release(call.repository, release))


@ROUTES.below("GET", "/releases/latest", _READ)
async def show_latest_release(call: Call) -> web.StreamResponse:
    """The latest one, which is neither a draft nor a pre-release."""
    if call.repository.latest is None:
        raise not_found()
    return _show(call, call.repository.latest)


@ROUTES.below("GET", "/releases/tags/{tag:.+}", _READ)
async def show_release_of_tag(call: Call) -> web.StreamResponse:
    """The release of a tag."""
    for release in call.repository.published:
        if release.tag == call.request.match_info["tag"]:
            return _show(call, release)
    raise not_found()


@ROUTES.below("POST", "/releases", _WRITE, right="write")
async def create_release(call: Call) -> web.StreamResponse:
    """A new release, with its tag unless it is a draft."""
    made = await call.hub.acts.release(call.repository, call.who, _wanted(await call.body()))
    return _show(call, made, status=201)


@ROUTES.below("GET", "/releases/{release_id}", _READ)
async def show_release(call: Call) -> web.StreamResponse:
    """One release."""
    return _show(call, _release(call))


@ROUTES.below("PATCH", "/releases/{release_id}", _WRITE, right="write")
async def update_release(call: Call) -> web.StreamResponse:
    """Other fields, or a draft is published."""
    release = _release(call)
    await call.hub.acts.edit_release(call.repository, release, call.who, _wanted(await call.body()))
    return _show(call, release)


@ROUTES.below("DELETE", "/releases/{release_id}", _WRITE, right="write")
async def delete_release(call: Call) -> web.StreamResponse:
    """Take it away; the tag stays."""
    call.hub.acts.delete_release(call.repository, _release(call), call.who)
    return web.Response(status=204)


@ROUTES.below("GET", "/tags", _READ)
async def list_tags(call: Call) -> web.StreamResponse:
    """Tags with the commits that they name now, in the order of their names, the last first."""
    names = [name for name in bare.refs(call.repository.folder) if name.startswith("refs/tags/")]
    found = [(name.removeprefix("refs/tags/"), await bare.resolve(call.repository.folder, name)) for name in names]
    return call.page(sorted(found, reverse=True), lambda each: call.hub.shapes.tag(call.repository, *each))


def _release(call: Call) -> Release:
    for release in call.repository.releases:
        if release.id == call.number("release_id"):
            return release
    raise not_found()


def _show(call: Call, release: Release, status: int = 200) -> web.Response:
    return web.json_response(call.hub.shapes.release(call.repository, release), status=status)


def _wanted(sent: dict[str, Any]) -> Draft:
    """What was sent; what this local GitHub does not keep is refused rather than lost."""
    texts = {"tag_name": "tag", "target_commitish": "target", "name": "name", "body": "body", "make_latest": "latest"}
    flags = ("draft", "prerelease")
    unknown = {name for name, value in sent.items() if name not in (*texts, *flags) and value not in (None, False)}
    if unknown:
        raise invalid("Release", min(unknown), "is not kept by this local GitHub: leave it out")
    for name in flags:
        if not isinstance(sent.get(name), bool | None):
            raise invalid("Release", name, "is neither true nor false")
    if sent.get("make_latest") not in (None, *LATEST):
        raise invalid("Release", "make_latest", f"is not one of {', '.join(LATEST)}")
    said = {field: None if sent.get(name) is None else str(sent[name]) for name, field in texts.items()}
    return Draft(**said, draft=sent.get("draft"), prerelease=sent.get("prerelease"))
