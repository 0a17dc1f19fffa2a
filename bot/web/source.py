"""Git for agents: read-only smart HTTP that adds our own credentials; no machine ever holds a token of GitHub's.

A lease reaches its own repository and the repository of its scripts, nothing else.
"""

import base64

from aiohttp import ClientSession, web
from sqlalchemy import select

from bot.core.nouns import Call
from bot.store.codec import load
from bot.store.tables import Repository, Request
from bot.web.agent_api import fail, lease_of
from bot.web.keys import SERVICES
from runners.protocol import PREFIX

SESSION = web.AppKey("git_session", ClientSession)


def add_routes(app: web.Application) -> None:
    """The two calls of a fetch."""
    base = PREFIX + "/source/{owner}/{name}.git"
    app.router.add_get(base + "/info/refs", proxy)
    app.router.add_post(base + "/git-upload-pack", proxy)
    app.cleanup_ctx.append(_session)


async def _session(app: web.Application):  # type: ignore[no-untyped-def] # aiohttp's own shape of a context
    async with ClientSession(auto_decompress=False) as session:
        app[SESSION] = session
        yield


async def proxy(request: web.Request) -> web.StreamResponse:
    """Pass one call of `git fetch` on to GitHub and its answer back, as a stream."""
    services = request.app[SERVICES]
    lease = await lease_of(request)
    full_name = f"{request.match_info['owner']}/{request.match_info['name']}"
    if lease is None:
        return fail(401, "this credential opens no lease")
    if request.method == "GET" and request.query.get("service") != "git-upload-pack":
        return fail(403, "read only")
    async with services.database.read() as tx:
        owner = await tx.get_one(Request, lease.request_id)
        repository = await tx.get(Repository, owner.repository_id)
        scripts = load(Call, owner.call).config
        named = {owner.full_name: repository}
        if scripts and scripts.scripts:
            found = select(Repository).where(Repository.full_name == scripts.scripts.repository)
            named[scripts.scripts.repository] = (await tx.scalars(found)).one_or_none()
    if full_name not in named:
        return fail(403, "this lease has no business there")
    # a body that came compressed has been opened on its way in
    headers = {k: v for k in ("Content-Type", "Accept", "Git-Protocol") if (v := request.headers.get(k))}
    known = named[full_name]
    if known is not None:
        token = await services.api.installation_token(known.installation_id)
        headers["Authorization"] = "Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()
    # the name may have changed since; the row follows the repository's id
    current = known.full_name if known else full_name
    url = f"{services.settings.github_web_url}/{current}.git/{request.path.rsplit('.git/', 1)[1]}"
    body = await request.read() if request.method == "POST" else None
    async with request.app[SESSION].request(
        request.method, url, params=request.query, headers=headers, data=body
    ) as upstream:
        answer = web.StreamResponse(status=upstream.status)
        answer.content_type = upstream.content_type
        await answer.prepare(request)
        async for chunk in upstream.content.iter_chunked(65536):
            await answer.write(chunk)
        await answer.write_eof()
        return answer
