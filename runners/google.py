"""Calls to one of Google's APIs over REST, signed by google-auth; for services whose own client we do not use.

Nothing is repeated here: the bot repeats, and sees each refusal.
"""

import asyncio
import importlib
import time
from collections.abc import Mapping
from typing import Any

from runners.backends.base import BackendError

_PATIENCE_S = 60.0
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# names of google.rpc.Code by number: answers carry the name, errors of operations the number
_NAMES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
_LATER = ("CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNAVAILABLE")


class CloudAwayError(OSError):
    """The cloud cannot be reached or asks to come again later; the bot does."""


class Refused(Exception):
    """What an API answered, or what ended an operation: a google.rpc.Status. `name` is the name of its code."""

    def __init__(self, service: str, status: Mapping[str, Any]) -> None:
        code = status.get("code", 0)
        # of an answer the HTTP status, of an operation's error a number of google.rpc.Code
        self.code = int(code)
        number = _NAMES[code] if code < len(_NAMES) else f"HTTP {code}"
        self.service, self.name = service, str(status.get("status") or number)
        self.sentence = str(status.get("message") or self.name)
        super().__init__(self.sentence)
        details = [one for one in status.get("details", []) if isinstance(one, dict)]
        self.is_quota = any(str(one.get("@type", "")).endswith("google.rpc.QuotaFailure") for one in details)
        self.is_rate = any(one.get("reason") == "RATE_LIMIT_EXCEEDED" for one in details)
        reasons = [one.get("reason") for one in (*details, *status.get("errors", ()))]
        self.is_off = "SERVICE_DISABLED" in reasons or "accessNotConfigured" in reasons

    @property
    def is_later(self) -> bool:
        """Whether the same call may succeed another time."""
        return self.name in _LATER or self.name.startswith("HTTP 5")

    def away(self) -> BackendError | CloudAwayError:
        """For calls that no stock-out can answer: to be repeated, or the operator's to mend."""
        if self.is_later:
            return CloudAwayError(f"{self.service} asks to come again later: {self.sentence[:200]}")
        return BackendError("config", f"{self.service} refused: {self.sentence}")


class GoogleApi:
    """One API at `host`, which people call `service`. `endpoint` is another address for it, empty for its own."""

    def __init__(self, service: str, host: str, *, credentials_file: str = "", endpoint: str = "") -> None:
        self.service, self.host = service, host
        self._credentials_file, self._address = credentials_file, endpoint.rstrip("/") or f"https://{host}"
        self._session: Any = None
        # the Date of the last answer, and when it came by our own clock
        self.dated: tuple[str, float] = ("", 0.0)

    @property
    def account(self) -> str:
        """The service account that signs, as far as its key tells, after the first call."""
        email = str(getattr(getattr(self._session, "credentials", None), "service_account_email", ""))
        return email if "@" in email else ""

    async def call(self, method: str, path: str, query: Mapping[str, str], body: Any = None) -> dict[str, Any]:
        """One call, in a thread, since the library is not async. Raises Refused, CloudAwayError, BackendError."""
        try:
            auth, requests = (importlib.import_module(name) for name in ("google.auth.exceptions", "requests"))
        except ImportError:
            raise BackendError("config", "google-auth is missing: pip install 'benchbot[gcp]'.") from None

        def call() -> tuple[int, Any]:
            self._session = self._session or self._signed()
            address = f"{self._address}/{path}"
            # a redirect would lead to another address
            answer = self._session.request(
                method, address, params=query, json=body, timeout=_PATIENCE_S, allow_redirects=False
            )
            self.dated = (answer.headers.get("Date", ""), time.time())
            return answer.status_code, answer.json()

        try:
            status, answer = await asyncio.to_thread(call)
        except (requests.RequestException, auth.TransportError) as error:
            raise CloudAwayError(f"{self.service} cannot be reached") from error
        except auth.GoogleAuthError as error:
            raise BackendError("config", f"The credentials for {self.service} do not work.") from error
        said = answer if isinstance(answer, dict) else {}
        if status >= 300:
            raise Refused(self.service, {"code": status, **said.get("error", {})})
        return said

    def _signed(self) -> Any:
        """A session that signs each call; a key signs by itself and asks no other address for a token."""
        transport = importlib.import_module("google.auth.transport.requests")
        if self._credentials_file:
            accounts = importlib.import_module("google.oauth2.service_account")
            try:
                credentials = accounts.Credentials.from_service_account_file(self._credentials_file)
            except (OSError, ValueError) as error:
                sentence = f"{self._credentials_file} is no readable key of a service account."
                raise BackendError("config", sentence) from error
        else:
            credentials, _ = importlib.import_module("google.auth").default(default_scopes=[_SCOPE])
        return transport.AuthorizedSession(credentials, default_host=self.host)
