"""The connection to the bot: one JSON or bytes exchange at a time, tried again while the bot cannot be reached."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

from runners import protocol

# statuses after which the same exchange may succeed later
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_OVER = frozenset({401, 403, 410})
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class RefusedError(Exception):
    """The bot's answer was a no that stays a no. `status` is the HTTP status, `body` what it said."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(f"the bot answered {status}: {body.get('sentence', '')}")
        self.status = status
        self.body = body


class LeaseOverError(Exception):
    """The bot does not know this lease any more, or will not talk to us: nothing is left to do for it."""


class SilentError(Exception):
    """The bot could not be reached for as long as we were willing to wait."""


class Link:
    """Exchanges with the bot. Safe to use from several threads; each has a connection of its own.

    `gone` is asked between tries and ends the waiting: it is true when nothing matters any more.
    """

    def __init__(self, server: str, gone: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{server} is not the address of a bot: http://... or https://... is needed")
        self._parts = parts
        self._gone = gone
        self._clock = clock
        self._mine = threading.local()
        self.credential = ""

    def post(self, path: str, message: Mapping[str, Any], patience_s: float) -> dict[str, Any]:
        """POST a message and return the answer. Raises RefusedError, LeaseOverError and SilentError."""
        body = json.dumps(message).encode()
        return self._exchange("POST", path, body, patience_s)

    def put(self, run: str, path: str, offset: int, patience_s: float, body: bytes) -> int:
        """Append bytes to a file of a run; returns the offset behind them, or where the bot wants to go on."""
        target = f"runs/{quote(run, safe='')}/files/{quote(path)}?offset={offset}"
        try:
            answer = self._exchange("PUT", target, body, patience_s)
        except RefusedError as no:
            if no.status != 409 or "offset" not in no.body:
                raise
            answer = dict(no.body)
        return int(answer["offset"])

    def get(self, run: str, path: str, into: BinaryIO) -> None:
        """Write a file that the bot has of a run into `into`. Raises OSError when it cannot be had whole."""
        target = f"runs/{quote(run, safe='')}/files/{quote(path)}"
        try:
            connection = self._connection()
            headers = {"Authorization": f"Bearer {self.credential}"}
            connection.request("GET", f"{self._parts.path}{protocol.PREFIX}/{target}", headers=headers)
            with connection.getresponse() as response:
                if response.status != 200:
                    raise OSError(f"the bot answered {response.status}")
                shutil.copyfileobj(response, into, 1024 * 1024)
        except http.client.HTTPException as error:
            raise OSError(str(error) or type(error).__name__) from error
        finally:
            self._close()

    def _exchange(self, method: str, path: str, body: bytes, patience_s: float) -> dict[str, Any]:
        until = self._clock() + patience_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                status, answer = self._once(method, path, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._close()
                trouble = str(error) or type(error).__name__
            else:
                if status < 300:
                    return answer
                if status in _OVER:
                    raise LeaseOverError(f"the bot answered {status}: {answer.get('sentence', '')}")
                if status not in _TRANSIENT:
                    raise RefusedError(status, answer)
                trouble = f"status {status}"
            if self._clock() + pause > until or self._gone.wait(pause):
                raise SilentError(trouble)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _once(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        connection = self._connection()
        headers = {"Content-Type": "application/json" if method == "POST" else "application/octet-stream"}
        if self.credential:
            headers["Authorization"] = f"Bearer {self.credential}"
        connection.request(method, f"{self._parts.path}{protocol.PREFIX}/{path}", body, headers)
        with connection.getresponse() as response:
            raw = response.read()
            status = response.status
        try:
            answer = json.loads(raw or b"{}")
        except ValueError:
            # a proxy in between speaks HTML; a success in it is none of the bot's
            return (502 if status < 300 else status), {}
        return status, answer if isinstance(answer, dict) else {}

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._parts.scheme == "https":
                connection = http.client.HTTPSConnection(host, port, timeout=30, context=ssl.create_default_context())
            else:
                connection = http.client.HTTPConnection(host, port, timeout=30)
            self._mine.connection = connection
        return connection

    def _close(self) -> None:
        connection = getattr(self._mine, "connection", None)
        if connection is not None:
            connection.close()
            self._mine.connection = None
