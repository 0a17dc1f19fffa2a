"""What all calls of the API share: who calls, what they may do, errors and pages of lists as GitHub gives them."""

import json
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web
from aiohttp.typedefs import Handler

from bot.sandbox.hub import HUB, Hub
from bot.sandbox.issue_acts import Actor
from bot.sandbox.state import RIGHTS, Account, App, Installation, Moved, Problem, Repository, not_found

DOCUMENTATION = "https://docs.github.com/rest"
# a call that an App makes by its own token, before it has one of an installation
APP_ITSELF = "app"
LEVELS = ("none", "read", "write", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls: nobody (`account` None), a person, an App by its own token, or one of its installations."""

    account: Account | None = None
    app: App | None = None
    installation: Installation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that has passed the door. `repository` is set for calls below a repository."""

    hub: Hub
    request: web.Request
    caller: Caller
    place: Repository | None = None

    @property
    def repository(self) -> Repository:
        """The repository of the call."""
        assert self.place is not None
        return self.place

    @property
    def who(self) -> Account:
        """The account that acts. Raises Problem 401 for nobody and for an App without an installation."""
        if self.caller.account is None:
            raise Problem(401, "Requires authentication")
        return self.caller.account

    @property
    def acting_app(self) -> App:
        """The App whose installation calls. Raises Problem 403 for people."""
        if self.caller.installation is None:
            raise Problem(403, "You must authenticate via a GitHub App.")
        return self.caller.installation.app

    @property
    def actor(self) -> Actor:
        """The account that acts, and the App that it acts for."""
        return Actor(account=self.who, app=self.caller.installation.app if self.caller.installation else None)

    def number(self, name: str) -> int:
        """A number in the path."""
        text = self.request.match_info[name]
        if not text.isdigit():
            raise not_found()
        return int(text)

    async def body(self) -> dict[str, Any]:
        """The JSON object that was sent; an empty one for no body. Raises Problem 400."""
        raw = await self.request.read()
        if not raw:
            return {}
        try:
            sent = json.loads(raw)
        except ValueError:
            raise Problem(400, "Problems parsing JSON") from None
        if not isinstance(sent, dict):
            raise Problem(400, "Body should be a JSON object")
        return sent

    def page(self, items: Sequence[Any], shape: Callable[[Any], Any], key: str = "") -> web.Response:
        """One page of a list, with GitHub's Link header; below `key` with its total where GitHub does so."""
        query = self.request.query
        size = min(max(_whole(query.get("per_page"), 30), 1), 100)
        page = max(_whole(query.get("page"), 1), 1)
        last = max(math.ceil(len(items) / size), 1)
        shown = [shape(item) for item in items[(page - 1) * size : page * size]]
        response = web.json_response({"total_count": len(items), key: shown} if key else shown)
        around = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        links = [
            f'<{self.hub.state.origin}{self.request.rel_url.update_query(page=number)}>; rel="{name}"'
            for name, number in around.items()
            if (name in ("next", "last") and page < last) or (name in ("prev", "first") and page > 1)
        ]
        if links:
            response.headers["Link"] = ", ".join(links)
        return response


def _whole(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default


Answer = Callable[[Call], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Routes:
    """The calls of one module, each with what it needs: a permission of the App (`issues:write`, several: one of them)
    and a right of the person on the repository."""

    _known: list[tuple[str, str, Handler]] = field(default_factory=list)

    def top(self, method: str, path: str) -> Callable[[Answer], Answer]:
        """A call that is not about one repository."""

        def register(answer: Answer) -> Answer:
            async def handler(request: web.Request) -> web.StreamResponse:
                hub = request.app[HUB]
                return await answer(Call(hub=hub, request=request, caller=caller_of(hub, request)))

            self._known.append((method, path, handler))
            return answer

        return register

    def below(self, method: str, path: str, *needs: str, right: str = "read") -> Callable[[Answer], Answer]:
        """A call below a repository, by name and by id."""

        def register(answer: Answer) -> Answer:
            async def handler(request: web.Request) -> web.StreamResponse:
                hub = request.app[HUB]
                caller = caller_of(hub, request)
                try:
                    repository = _repository(hub, request)
                except Moved as moved:
                    # who may not read it does not learn where it went
                    _admit(caller, moved.repository, needs, "read")
                    raise
                _admit(caller, repository, needs, right)
                return await answer(Call(hub=hub, request=request, caller=caller, place=repository))

            for start in ("/repos/{owner}/{repo}", "/repositories/{repository_id}"):
                self._known.append((method, start + path, handler))
            return answer

        return register

    def add_to(self, app: web.Application) -> None:
        """Register them."""
        for method, path, handler in self._known:
            app.router.add_route(method, path, handler)


def caller_of(hub: Hub, request: web.Request) -> Caller:
    """Who calls, by the Authorization header. Raises Problem 401."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if not scheme:
        return Caller()
    if scheme.lower() not in ("bearer", "token") or not secret:
        raise Problem(401, "Bad credentials")
    if secret.count(".") == 2:
        return Caller(app=_app_of(hub, secret))
    token = hub.state.tokens.get(secret)
    if token is None or (token.until is not None and token.until < time.time()):
        raise Problem(401, "Bad credentials")
    return Caller(account=token.account, installation=token.installation)


def _app_of(hub: Hub, secret: str) -> App:
    try:
        issuer = str(jwt.decode(secret, options={"verify_signature": False}).get("iss", ""))
        app = hub.state.apps[int(issuer)]
        claims = jwt.decode(secret, app.public_key, algorithms=["RS256"], options={"require": ["exp", "iat"]})
    except jwt.ExpiredSignatureError:
        raise Problem(401, "'Expiration time' claim ('exp') must be a numeric value in the future") from None
    except (jwt.PyJWTError, KeyError, ValueError):
        raise Problem(401, "A JSON web token could not be decoded") from None
    if claims["exp"] > time.time() + 600:
        raise Problem(401, "'Expiration time' claim ('exp') is too far in the future")
    return app


def _repository(hub: Hub, request: web.Request) -> Repository:
    info = request.match_info
    if "owner" in info:
        return hub.state.repository(f"{info['owner']}/{info['repo']}")
    found = hub.state.repositories.get(int(info["repository_id"])) if info["repository_id"].isdigit() else None
    if found is None:
        raise not_found()
    return found


def _admit(caller: Caller, repository: Repository, needs: tuple[str, ...], right: str) -> None:
    """Let in who may; hide private repositories from everybody else."""
    if caller.app is not None:
        if needs == (APP_ITSELF,):
            return
        raise Problem(401, "A JSON web token opens only what is about the App itself")
    if caller.installation is not None:
        if caller.installation.account is not repository.owner:
            raise not_found()
        if needs and needs != (APP_ITSELF,) and not any(_holds(caller.installation.app, need) for need in needs):
            raise Problem(403, "Resource not accessible by integration")
        return
    has = "none" if repository.private else "read"
    if caller.account is not None:
        has = repository.right(caller.account)
    if has == "none":
        raise not_found()
    if RIGHTS.index(has) < RIGHTS.index(right):
        raise Problem(403, f"Must have {right} rights to Repository.")


def _holds(app: App, need: str) -> bool:
    name, _, level = need.partition(":")
    return LEVELS.index(app.permissions.get(name, "none")) >= LEVELS.index(level)


async def no_such_call(_: web.Request) -> web.Response:
    """Every path that the API does not have."""
    raise not_found()


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Problems as GitHub's JSON, and the rate-limit headers that clients read."""
    try:
        response = await handler(request)
    except Moved as moved:
        response = _elsewhere(request, moved.repository)
    except Problem as problem:
        body: dict[str, Any] = {"message": problem.message, "documentation_url": DOCUMENTATION}
        if problem.errors:
            body["errors"] = [dict(error) for error in problem.errors]
        elif problem.status == 422:
            body["errors"] = [{"code": "custom", "message": problem.message}]
        body["status"] = str(problem.status)
        response = web.json_response(body, status=problem.status)
    if not response.prepared:
        response.headers["X-RateLimit-Limit"] = "5000"
        response.headers["X-RateLimit-Remaining"] = "4999"
        response.headers["X-RateLimit-Reset"] = str(int(time.time()) + 3600)
    return response


def _elsewhere(request: web.Request, repository: Repository) -> web.Response:
    """The same call by the repository's id; 307 where a client must send again what it sent."""
    hub = request.app[HUB]
    rest = request.rel_url.raw_path.split("/repos/", 1)[1].split("/", 2)[2:]
    url = "/".join([f"{hub.shapes.api}/repositories/{repository.id}", *rest])
    if request.query_string:
        url += f"?{request.rel_url.raw_query_string}"
    body = {"message": "Moved Permanently", "url": url, "documentation_url": DOCUMENTATION}
    status = 301 if request.method in ("GET", "HEAD") else 307
    return web.json_response(body, status=status, headers={"Location": url})


@web.middleware
async def orders_of_tests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Strike the calls that a test said should fail, before or after their effect; remember every call."""
    hub = request.app[HUB]
    fault = next((each for each in hub.faults if each.fits(request.method, request.path)), None)
    if fault is not None:
        fault.times -= 1
        if fault.after:
            await handler(request)
        body = {"message": "Server Error", "documentation_url": DOCUMENTATION, "status": str(fault.status)}
        response: web.StreamResponse = web.json_response(body, status=fault.status, headers=fault.headers)
    else:
        response = await handler(request)
    hub.calls.append((request.method, request.path, response.status))
    return response
