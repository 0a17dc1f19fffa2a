"""Calls to Compute Engine through google-cloud-compute, and what its refusals mean.

Nothing is repeated here, and nothing leaves the given endpoint: the bot repeats, and sees each refusal.
"""

import asyncio
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from runners.backends.base import BackendError
from runners.google import CloudAwayError

_PATIENCE_S = 60.0

# what stands in an error's code or reason, and what that means; the first that fits counts
_STOCK_OUT = (
    "RESOURCE_POOL_EXHAUSTED",
    "STOCKOUT",
    "insufficientCapacity",
    "resourcesUnavailable",
    "UNSUPPORTED_OPERATION",  # a spot machine that was preempted while it was made
    "RESOURCE_NOT_FOUND",  # it vanished after it was accepted
)
_QUOTA = ("QUOTA_EXCEEDED", "quotaExceeded", "LIMIT_EXCEEDED", "limitExceeded")
_LATER = ("RATE_EXCEEDED", "rateLimitExceeded", "RESOURCE_NOT_READY", "resourceNotReady", "backendError")
_IN_USE = ("RESOURCE_IN_USE", "resourceInUse")


class Refused(Exception):
    """What the API answered: HTTP status (0: an operation's error), codes, and its sentence."""

    def __init__(self, status: int, codes: tuple[str, ...], sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.codes, self.sentence = status, codes, sentence

    @property
    def is_busy(self) -> bool:
        """Whether the thing is just being made or changed, or the API asks to come again."""
        return self._names((*_LATER, *_IN_USE))

    def told(self, zone: str, project: str) -> BackendError | CloudAwayError:
        """The error in our words, with the scope that it is about."""
        if self._names(_QUOTA) or (self.status == 403 and "quota" in self.sentence.lower()):
            scope = project if "GPUS_ALL_REGIONS" in self.sentence else zone.rpartition("-")[0]
            return BackendError("quota", self.sentence, scope)
        if self._names(_STOCK_OUT) or (self.status == 503 and not self._names(_LATER)):
            return BackendError("no_capacity", self.sentence)
        return self.away()

    def away(self) -> BackendError | CloudAwayError:
        """For calls that no stock-out can answer: to be repeated, or the operator's to mend."""
        if self._names(_LATER) or self.status in (408, 429) or self.status >= 500:
            return CloudAwayError(f"Google Compute Engine asks to come again later: {self.sentence[:200]}")
        return BackendError("config", f"Google Compute Engine refused: {self.sentence}")

    def _names(self, words: tuple[str, ...]) -> bool:
        return any(word in code for code in self.codes for word in words)


class ComputeApi:
    """The services of the API, each with a client that is made when it is first called.

    `options` may hold `credentials_file` (a service account's key; without it the environment's own credentials) and
    `endpoint` (another address of the API).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._clients: dict[str, Any] = {}

    async def call(
        self, service: str, method: str, request: Mapping[str, Any], read: Callable[[Any], Any] = lambda answer: answer
    ) -> Any:
        """One call in a thread, since the library is not async; its own retries are off.

        Raises Refused, CloudAwayError, BackendError.
        """

        def call() -> Any:
            return read(getattr(self._client(service), method)(request=dict(request), timeout=_PATIENCE_S, retry=None))

        api, auth, requests = (
            importlib.import_module(name)
            for name in ("google.api_core.exceptions", "google.auth.exceptions", "requests")
        )
        try:
            return await asyncio.to_thread(call)
        except api.GoogleAPICallError as error:
            reasons = tuple(str(item.get("reason", "")) for item in error.errors if isinstance(item, dict))
            raise Refused(int(error.code or 0), reasons, str(error.message)) from None
        except (requests.RequestException, auth.TransportError, api.RetryError) as error:
            raise CloudAwayError("Google Compute Engine cannot be reached") from error
        except auth.GoogleAuthError as error:
            raise BackendError("config", "The credentials for Google Compute Engine do not work.") from error

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            try:
                compute = importlib.import_module("google.cloud.compute_v1")
            except ImportError:
                raise BackendError("config", "google-cloud-compute is missing: pip install 'benchbot[gcp]'.") from None
            chosen = {}
            if self._options.get("endpoint"):
                chosen["client_options"] = {"api_endpoint": self._options["endpoint"]}
            kind = getattr(compute, f"{service}Client")
            if self._options.get("credentials_file"):
                self._clients[service] = kind.from_service_account_file(self._options["credentials_file"], **chosen)
            else:
                self._clients[service] = kind(**chosen)
        return self._clients[service]
