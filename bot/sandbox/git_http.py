"""git over HTTP: clone, fetch and push through git's own `http-backend`, with the rights of the repository."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator

from aiohttp import web

from bot.sandbox.api.base import Caller
from bot.sandbox.hub import HUB, Hub
from bot.sandbox.state import Moved, Problem, Repository

CHUNK = 65_536


def add_routes(app: web.Application) -> None:
    """The three calls of git's smart protocol."""
    base = "/{owner}/{repo}.git"
    app.router.add_get(base + "/info/refs", talk)
    app.router.add_post(base + "/git-upload-pack", talk)
    app.router.add_post(base + "/git-receive-pack", talk)


async def talk(request: web.Request) -> web.StreamResponse:
    """One call of a clone, fetch or push."""
    hub = request.app[HUB]
    tail = request.path.rpartition(".git/")[2]
    writes = "git-receive-pack" in (tail, request.query.get("service"))
    try:
        caller = _caller(hub, request)
        repository = _repository(hub, request, caller, writes=writes)
    except Moved as moved:
        address = f"{hub.state.origin}/{moved.repository.full_name}.git/{tail}"
        query = f"?{request.query_string}" if request.query_string else ""
        return web.Response(status=301, headers={"Location": address + query})
    except Problem as problem:
        headers = {"WWW-Authenticate": 'Basic realm="local"'} if problem.status == 401 else {}
        return web.Response(status=problem.status, text=f"{problem.message}\n", headers=headers)
    response = await _backend(request, repository, tail, caller)
    if tail == "git-receive-pack" and caller.account is not None:
        # before the push ends for whoever pushed: what it moves has moved by then
        await hub.acts.look_at_branches(repository, caller.account)
    await response.write_eof()
    return response


def _repository(hub: Hub, request: web.Request, caller: Caller, *, writes: bool) -> Repository:
    """The repository, for whoever may. Raises Problem, Moved included."""
    try:
        repository = hub.state.repository(f"{request.match_info['owner']}/{request.match_info['repo']}")
    except Moved as moved:
        _admit(caller, moved.repository, writes=writes)
        raise
    _admit(caller, repository, writes=writes)
    return repository


def _caller(hub: Hub, request: web.Request) -> Caller:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if not scheme:
        return Caller()
    try:
        password = base64.b64decode(secret, validate=True).decode().partition(":")[2]
    except ValueError:
        password = ""
    token = hub.state.tokens.get(password)
    if scheme.lower() != "basic" or token is None:
        raise Problem(401, "Invalid username or token.")
    return Caller(account=token.account, installation=token.installation)


def _admit(caller: Caller, repository: Repository, *, writes: bool) -> None:
    if caller.installation is not None:
        held = caller.installation.app.permissions.get("contents", "none")
        allowed = caller.installation.account is repository.owner and held in (
            ("write",) if writes else ("read", "write")
        )
    elif caller.account is not None:
        allowed = repository.allows(caller.account, "write" if writes else "read")
    else:
        allowed = not repository.private and not writes
    if not allowed:
        # git asks for a name and a token when it hears 401
        raise Problem(401 if caller.account is None else 403, "You have no right to this repository.")


async def _backend(request: web.Request, repository: Repository, tail: str, caller: Caller) -> web.StreamResponse:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    environment = {
        **inherited,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_PROJECT_ROOT": str(repository.folder.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GATEWAY_INTERFACE": "CGI/1.1",
        "PATH_INFO": f"/{repository.folder.name}/{tail}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.query_string,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "REMOTE_ADDR": request.remote or "127.0.0.1",
    }
    if caller.account is not None:
        environment["REMOTE_USER"] = caller.account.login
    process = await asyncio.create_subprocess_exec(
        "git",
        "http-backend",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    feeding = asyncio.create_task(_feed(request, process.stdin))
    try:
        status, headers = await _cgi_head(process.stdout)
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        while chunk := await process.stdout.read(CHUNK):
            await response.write(chunk)
        return response
    finally:
        feeding.cancel()
        if process.returncode is None and process.stdout.at_eof() is False:
            process.kill()
        await process.wait()


async def _feed(request: web.Request, stdin: asyncio.StreamWriter) -> None:
    try:
        async for chunk in _chunks(request):
            stdin.write(chunk)
            await stdin.drain()
    except ConnectionError:
        pass  # git has read what it wanted
    finally:
        stdin.close()


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    if request.method == "POST":
        async for chunk in request.content.iter_chunked(CHUNK):
            yield chunk


async def _cgi_head(stdout: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    status, headers = 200, {}
    while line := (await stdout.readline()).decode().strip():
        name, _, value = line.partition(": ")
        if name.lower() == "status":
            status = int(value.split()[0])
        else:
            headers[name] = value
    return status, headers
