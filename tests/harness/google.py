"""What each stand-in for a service of Google's has: a port on loopback, a judge, a key whose signatures it checks."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.crypt import RSASigner

from tests.harness.discovery import Judge, middleware

Json = dict[str, Any]
PROJECT = "bench-project"

# a signer has no state, and reading the same key anew for every client took a third of the tests' time
RSASigner.from_string = staticmethod(cache(RSASigner.from_string))


@cache
def _key(*, known: bool) -> rsa.RSAPrivateKey:
    """One that the services know and one that they do not; making one takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class GoogleService(ABC):
    """A service of one project. `clock` is the world's; `host` is where the real service is."""

    def __init__(self, clock: Callable[[], float], judge: Judge, host: str) -> None:
        self.clock, self.host = clock, host
        self.violations: list[str] = []
        self.calls: Counter[str] = Counter()
        self._judge = judge
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

    async def start(self) -> None:
        """Listen on a port of loopback."""
        app = web.Application(middlewares=[middleware(self._judge, self.violations), self._signed])
        self.routes(app)
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
        pem = _key(known=known).private_bytes(
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
                _key(known=True).public_key(),
                ["RS256"],
                options={"require": ["exp"]},
                audience=f"https://{self.host}/",
                issuer=self.email,
            )
        except jwt.InvalidTokenError:
            return self.refusal()
        self.move()
        answer: web.StreamResponse = await handler(request)
        return answer
