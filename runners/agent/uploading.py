"""A file on its way into a bucket: a resumable upload to an address that the bot gave, without any credential.

After every fault the other side is asked how far it has come; what it has is not sent again.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from typing import BinaryIO
from urllib.parse import urlsplit

from runners import protocol
from runners.agent.link import FIRST_PAUSE_S, LONGEST_PAUSE_S, TRANSIENT, connect, target_of


class NotTakenError(Exception):
    """The bucket does not take the file: the address is not good any more, or the bytes are others than announced."""


class BucketSilentError(Exception):
    """The bucket could not be reached, or took nothing, for as long as we were willing to wait."""


class Upload:
    """One file of `size` bytes to one address. `gone` ends the waiting."""

    def __init__(self, url: str, file: BinaryIO, size: int, gone: threading.Event) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise NotTakenError("this is no address")
        self._parts, self._file, self._size, self._gone = parts, file, size, gone
        self._connection: http.client.HTTPConnection | None = None

    def run(self, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Send all of it. Raises NotTakenError, and BucketSilentError after so many seconds without getting on."""
        try:
            self._run(patience_s, clock)
        finally:
            self._close()

    def _run(self, patience_s: float, clock: Callable[[], float]) -> None:
        offset: int | None = None
        best, until, pause = -1, clock() + patience_s, FIRST_PAUSE_S
        while True:
            trouble = "it takes nothing"
            try:
                done, offset = self._step(offset)
            except (OSError, http.client.HTTPException) as error:
                done, offset, trouble = False, None, str(error) or type(error).__name__
                self._close()
            if done:
                return
            if offset is not None and offset > best:
                best, until, pause = offset, clock() + patience_s, FIRST_PAUSE_S
                continue
            if clock() + pause > until or self._gone.wait(pause):
                raise BucketSilentError(trouble)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _step(self, offset: int | None) -> tuple[bool, int | None]:
        """Send a piece from `offset` on, or ask for the offset. Whether the file is whole, and where to go on."""
        piece = b""
        if offset is not None:
            self._file.seek(offset)
            piece = self._file.read(min(protocol.CHUNK_BYTES, self._size - offset))
            if not piece:
                raise NotTakenError("the file is shorter than it was")
        begin = f"{offset}-{offset + len(piece) - 1}" if offset is not None else "*"
        status, taken = self._put({"Content-Range": f"bytes {begin}/{self._size}"}, piece)
        if status in (200, 201):
            return True, None
        if status == 308:
            return False, int(taken.rpartition("-")[2]) + 1 if taken else 0
        if status in TRANSIENT:
            raise OSError(f"status {status}")
        raise NotTakenError(f"the bucket answered {status}")

    def _put(self, headers: dict[str, str], piece: bytes) -> tuple[int, str]:
        if self._connection is None:
            self._connection = connect(self._parts)
        self._connection.request("PUT", target_of(self._parts), piece, {"Content-Length": str(len(piece)), **headers})
        with self._connection.getresponse() as response:
            response.read()
            return response.status, response.headers.get("Range", "")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
