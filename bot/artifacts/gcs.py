"""Artifacts in a bucket of Google Cloud Storage, through its JSON API.

Uploads go to resumable sessions that the bot begins: each is for one object that must not exist yet, of one size and
one hash, and whoever has its address needs no credentials. Nothing is repeated here; whoever calls does.
"""

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout
from yarl import URL

from bot.artifacts.base import Bucket, BucketAway, BucketRefused, Seen, SessionOver
from bot.artifacts.signing import Account, Request

ENDPOINT = "https://storage.googleapis.com"
LINK_LIVES_S = 600
# a multiple of 256 KiB, as sessions want
PIECE_BYTES = 8 * 1024 * 1024
_PATIENCE = ClientTimeout(total=None, sock_connect=30, sock_read=60)
_LATER = frozenset((408, 429, 500, 502, 503, 504))


class GcsBucket(Bucket):
    """Objects below `root`, which is gs://NAME or gs://NAME/PREFIX."""

    def __init__(
        self, root: str, account: Account, session: ClientSession, clock: Callable[[], float], endpoint: str = ""
    ) -> None:
        super().__init__()
        self._root, self._account, self._session, self._clock = root, account, session, clock
        self._endpoint = endpoint or ENDPOINT

    def address(self, run_id: str, object_id: str, path: str) -> str:
        """See `Bucket.address`; the path comes last, so that tools keep the name of the file."""
        return f"{self._root}/{run_id}/{object_id}/{path}"

    async def begin(self, address: str, expected: Seen) -> str:
        """See `Bucket.begin`."""
        bucket, name = _parts(address)
        query = {"uploadType": "resumable", "name": name, "ifGenerationMatch": "0"}
        kind = "application/octet-stream"
        length = {"X-Upload-Content-Length": str(expected.size), "X-Upload-Content-Type": kind}
        about = {"md5Hash": base64.b64encode(bytes.fromhex(expected.md5)).decode(), "contentType": kind}
        url = f"{self._endpoint}/upload/storage/v1/b/{bucket}/o?{_query(query)}"
        async with self._call("POST", url, headers=length, json=about) as answer:
            if answer.status == 404:
                raise BucketRefused(f"There is no bucket {bucket}, or the bot's account may not know of it.")
            await _raise(answer)
            return answer.headers["Location"]

    async def offset(self, session: str, size: int) -> int | None:
        """See `Bucket.offset`."""
        return await self._put(session, f"bytes */{size}", b"")

    async def send(self, session: str, file: Path, size: int) -> None:
        """See `Bucket.send`."""
        offset = await self.offset(session, size)
        while offset is not None:
            piece = await asyncio.to_thread(_piece, file, offset, min(PIECE_BYTES, size - offset))
            if not piece:
                raise SessionOver("the file is shorter than it was")
            offset = await self._put(session, f"bytes {offset}-{offset + len(piece) - 1}/{size}", piece)

    async def look(self, address: str) -> Seen | None:
        """See `Bucket.look`."""
        async with self._call("GET", self._object(address)) as answer:
            if answer.status == 404:
                return None
            await _raise(answer)
            found = await answer.json()
            return Seen(int(found["size"]), base64.b64decode(found.get("md5Hash", "")).hex())

    async def discard(self, address: str, session: str) -> None:
        """See `Bucket.discard`. The session first: it could make the object anew."""
        if session:
            async with self._call("DELETE", session, signed=False) as answer:
                if answer.status in _LATER:
                    await _raise(answer)
        async with self._call("DELETE", self._object(address)) as answer:
            if answer.status != 404:
                await _raise(answer)

    async def link(self, address: str, name: str) -> str:
        """See `Bucket.link`. Untrusted bytes: always as an attachment, never as a page."""
        bucket, path = _parts(address)
        query = {
            "response-content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
            "response-content-type": "application/octet-stream",
        }
        wanted = Request("GET", f"/{bucket}/{path}", query, self._clock(), LINK_LIVES_S)
        return await self._account.sign(self._endpoint, wanted)

    async def read(self, address: str) -> AsyncIterator[bytes]:
        """See `Bucket.read`."""
        async with self._call("GET", f"{self._object(address)}?alt=media") as answer:
            if answer.status == 404:
                raise FileNotFoundError(address)
            await _raise(answer)
            async for piece in answer.content.iter_chunked(1024 * 1024):
                yield piece

    async def beginning(self, address: str, size: int) -> bytes:
        """See `Bucket.beginning`."""
        some = {"Range": f"bytes=0-{size - 1}"}
        async with self._call("GET", f"{self._object(address)}?alt=media", headers=some) as answer:
            if answer.status == 404:
                raise FileNotFoundError(address)
            if answer.status == 416:
                return b""  # an empty object has no first byte
            await _raise(answer)
            found = b""
            # whoever does not know of ranges sends all of it
            while len(found) < size and (piece := await answer.content.read(size - len(found))):
                found += piece
            return found

    def _object(self, address: str) -> str:
        bucket, name = _parts(address)
        return f"{self._endpoint}/storage/v1/b/{bucket}/o/{quote(name, safe='')}"

    async def _put(self, session: str, content_range: str, data: bytes) -> int | None:
        async with self._call(
            "PUT", session, headers={"Content-Range": content_range}, data=io.BytesIO(data), signed=False
        ) as answer:
            if answer.status in (200, 201):
                return None
            if answer.status == 308:
                taken = answer.headers.get("Range", "")
                return int(taken.rpartition("-")[2]) + 1 if taken else 0
            if answer.status in _LATER:
                await _raise(answer)
            raise SessionOver(f"the session answered {answer.status}")

    @asynccontextmanager
    async def _call(self, method: str, url: str, *, signed: bool = True, **more: Any) -> AsyncIterator[ClientResponse]:
        headers: Mapping[str, str] = more.pop("headers", {})
        if signed:
            headers = {**headers, "Authorization": f"Bearer {await self._account.token()}"}
        address = URL(url, encoded=True)  # a slash within the name of an object stays %2F
        try:
            async with self._session.request(
                method, address, headers=headers, timeout=_PATIENCE, allow_redirects=False, **more
            ) as answer:
                yield answer
        except (ClientError, TimeoutError) as error:
            raise BucketAway("Cloud Storage cannot be reached") from error


async def _raise(answer: ClientResponse) -> None:
    """What an answer that is not good means."""
    if answer.status < 300:
        return
    if answer.status in _LATER:
        raise BucketAway(f"Cloud Storage answered {answer.status}")
    said = (await answer.text())[:300]
    raise BucketRefused(f"Cloud Storage answered {answer.status}; see docs/artifacts.md for the rights. {said}")


def _parts(address: str) -> tuple[str, str]:
    bucket, _, name = address.removeprefix("gs://").partition("/")
    return bucket, name


def _query(query: Mapping[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())


def _piece(file: Path, offset: int, size: int) -> bytes:
    with file.open("rb") as source:
        source.seek(offset)
        return source.read(size)
