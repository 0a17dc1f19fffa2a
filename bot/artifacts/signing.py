"""The account that a bucket knows the bot by: tokens for its calls, and signed addresses for those of others.

Credentials are google-auth's, which reads keys, the host's own account and workload identities alike.
"""

import asyncio
import hashlib
import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from bot.artifacts.base import BucketAway, BucketRefused

_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
# without a key, Google signs in the account's name
_SCOPE_TO_SIGN = "https://www.googleapis.com/auth/cloud-platform"
_ALGORITHM = "GOOG4-RSA-SHA256"
_WRONG = "The bucket's credentials do not work: check `artifacts.credentials_file` and docs/artifacts.md."


@dataclass(frozen=True, slots=True)
class Request:
    """What an address allows: a method, and a path below the endpoint, until some seconds after `at`."""

    method: str
    path: str
    query: Mapping[str, str]
    at: float
    lives_s: int


class Account:
    """One service account."""

    def __init__(self, credentials_file: str) -> None:
        try:
            accounts = importlib.import_module("google.oauth2.service_account")
            auth, self._errors = (
                importlib.import_module("google.auth"),
                importlib.import_module("google.auth.exceptions"),
            )
            self._transport = importlib.import_module("google.auth.transport.requests").Request()
        except ImportError:
            raise BucketRefused("google-auth is missing: pip install 'benchbot[gcp]'.") from None
        try:
            if credentials_file:
                self._credentials: Any = accounts.Credentials.from_service_account_file(
                    credentials_file, scopes=[_SCOPE]
                )
            else:
                self._credentials, _ = auth.default(scopes=[_SCOPE_TO_SIGN])
        except (OSError, ValueError, self._errors.GoogleAuthError) as error:
            raise BucketRefused(_WRONG) from error
        self._renewing = asyncio.Lock()

    async def token(self) -> str:
        """A token that is good for some minutes at least. Raises BucketAway and BucketRefused."""
        async with self._renewing:
            if not self._credentials.valid:
                await self._ask(lambda: self._credentials.refresh(self._transport))
            return str(self._credentials.token)

    async def sign(self, endpoint: str, wanted: Request) -> str:
        """The address that allows `wanted` to whoever has it (V4 signatures; only the host header is signed)."""
        await self.token()  # an account without a key learns its own name with its token
        email = str(getattr(self._credentials, "signer_email", None) or self._credentials.service_account_email)
        day = time.strftime("%Y%m%d", time.gmtime(wanted.at))
        scope = f"{day}/auto/storage/goog4_request"
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wanted.at))
        query = {
            **wanted.query,
            "X-Goog-Algorithm": _ALGORITHM,
            "X-Goog-Credential": f"{email}/{scope}",
            "X-Goog-Date": stamp,
            "X-Goog-Expires": str(wanted.lives_s),
            "X-Goog-SignedHeaders": "host",
        }
        pairs = "&".join(f"{_quoted(name)}={_quoted(query[name])}" for name in sorted(query))
        path = quote(wanted.path, safe="/~")
        host = urlsplit(endpoint).netloc
        canonical = f"{wanted.method}\n{path}\n{pairs}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{digest}".encode()
        signature: bytes = await self._ask(lambda: self._signer(email).sign(text))
        return f"{endpoint}{path}?{pairs}&X-Goog-Signature={signature.hex()}"

    def _signer(self, email: str) -> Any:
        signer = getattr(self._credentials, "signer", None)
        if signer is not None:
            return signer
        return importlib.import_module("google.auth.iam").Signer(self._transport, self._credentials, email)

    async def _ask(self, call: Callable[[], Any]) -> Any:
        """What google-auth does, in a thread, since it is not async."""
        try:
            return await asyncio.to_thread(call)
        except self._errors.TransportError as error:
            raise BucketAway("Google's accounts cannot be reached") from error
        except self._errors.GoogleAuthError as error:
            if getattr(error, "retryable", False):
                raise BucketAway("Google's accounts ask to come again later") from error
            raise BucketRefused(_WRONG) from error


def _quoted(text: str) -> str:
    return quote(text, safe="~")
