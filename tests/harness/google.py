"""What each stand-in for a service of Google's has: a port on loopback, a judge, a key whose signatures it checks.

Each also answers what the service account may do in the project, as Google's Resource Manager does.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.crypt import RSASigner

from tests.harness.discovery import Judge, description, middleware

Json = dict[str, Any]
PROJECT = "bench-project"

# a signer has no state, and reading the same key anew for every client took a third of the tests' time
RSASigner.from_string = staticmethod(cache(RSASigner.from_string))


@cache
def key(*, known: bool) -> rsa.RSAPrivateKey:
    """One that the services know and one that they do not; making one takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


_PERMISSIONS = "/v1/projects/"


class _WithPermissions:
    """The judge of a service and of the Resource Manager beside it."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def check_request(self, method: str, path: str, query: Mapping[str, str], body: Any) -> list[str]:
        return self._of(path).check_request(method, path, query, body)

    def check_response(self, method: str, path: str, status: int, body: Any) -> list[str]:
        return self._of(path).check_response(method, path, status, body)

    def _of(self, path: str) -> Judge:
        return description("cloudresourcemanager.v1") if path.startswith(_PERMISSIONS) else self._judge


class GoogleService(ABC):
    """A service of one project. `clock` is the world's; `host` is where the real service is."""

    def __init__(self, clock: Callable[[], float], judge: Judge, host: str) -> None:
        self.clock, self.host = clock, host
        self.violations: list[str] = []
        self.calls: Counter[str] = Counter()
        self._judge = _WithPermissions(judge)
        # permissions that the account does not have, and the answer of a Resource Manager that is not enabled
        self.lacking: set[str] = set()
        self.manager_off = False
        self._runner: web.AppRunner | None = None
        self.url = ""

    email = f"benchbot@{PROJECT}.iam.gserviceaccount.com"

    @abstractmethod
    def routes(self, app: web.Application) -> None:
        """Add what is answered."""

    @abstractmethod
    def move(self) -> None:
        """Let happen what has happened by itself since the last call."""

    @abstractmethod
    def refusal(self) -> web.Response:
        """The answer to a call that is not signed with our key."""

    def middlewares(self) -> list[Any]:
        """What every call passes: the judge of its JSON, and the check of its signature."""
        return [middleware(self._judge, self.violations), self._signed]

    async def start(self) -> None:
        """Listen on a port of loopback."""
        app = web.Application(middlewares=self.middlewares())
        self.routes(app)
        app.router.add_post(f"{_PERMISSIONS}{{project:[^/:]+}}:testIamPermissions", self._permissions)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Listen no more."""
        if self._runner:
            await self._runner.cleanup()

    def credentials(self, *, known: bool = True) -> Json:
        """A service account's key file, whose signatures this server accepts if it is `known`."""
        pem = key(known=known).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "key-1",
            "private_key": pem.decode(),
            "client_email": self.email,
            "client_id": "1",
            "token_uri": f"{self.url}/token",
        }

    @web.middleware
    async def _signed(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.calls[request.match_info.handler.__name__.strip("_")] += 1
        try:
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            jwt.decode(
                token,
                key(known=True).public_key(),
                ["RS256"],
                options={"require": ["exp"]},
                audience=f"https://{_host(request.path, self.host)}/",
                issuer=self.email,
            )
        except jwt.InvalidTokenError:
            return self.refusal()
        self.move()
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _permissions(self, request: web.Request) -> web.Response:
        """Those of the asked ones that the account has; none in a project of somebody else."""
        if self.manager_off:
            reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED"}
            said = "Cloud Resource Manager API has not been used in this project before or it is disabled."
            error = {"code": 403, "message": said, "status": "PERMISSION_DENIED", "details": [reason]}
            return web.json_response({"error": error}, status=403)
        asked, mine = (await request.json())["permissions"], request.match_info["project"] == PROJECT
        has = [one for one in asked if mine and one not in self.lacking]
        return web.json_response({"permissions": has} if has else {})


def _host(path: str, host: str) -> str:
    return "cloudresourcemanager.googleapis.com" if path.startswith(_PERMISSIONS) else host
