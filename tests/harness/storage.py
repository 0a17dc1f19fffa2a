"""Google Cloud Storage on loopback: a bucket, resumable sessions, signed addresses, and faults that a test asks for.

JSON calls are judged by Google's discovery document; sessions and V4 signatures are checked here as Google documents
them, the signature from the request as it arrived.
"""

import base64
import calendar
import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jwt
from aiohttp import ClientSession, web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from bot.artifacts.gcs import GcsBucket
from bot.artifacts.signing import Account
from tests.harness.discovery import description
from tests.harness.google import GoogleService, key

BUCKET = "acme-runs"
QUANTUM = 256 * 1024
WEEK_S = 7 * 86400


@dataclass
class Faults:
    """What goes wrong: a connection `cut_after` so many bytes of the next piece, and with `then_deaf` every one to a
    session from then on; `deaf` sessions; `busy` answers 503; a bucket that refuses us."""

    cut_after: int | None = None
    then_deaf: bool = False
    deaf: bool = False
    busy: int = 0
    forbidden: bool = False


@dataclass
class Kept:
    """An object."""

    data: bytes
    made_at: float

    @property
    def md5(self) -> str:
        return base64.b64encode(hashlib.md5(self.data).digest()).decode()


@dataclass
class Session:
    """A resumable upload: what was announced, and what has come."""

    name: str
    size: int
    md5: str
    made_at: float
    data: bytearray = field(default_factory=bytearray)
    over: int = 0


class CloudStorage(GoogleService):
    """The bucket `BUCKET`; `clock` is the world's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock, description("storage.v1"), "storage.googleapis.com")
        self.objects: dict[str, Kept] = {}
        self.sessions: dict[str, Session] = {}
        self.faults = Faults()
        self.puts: list[tuple[str, int]] = []
        self.pieces: list[int] = []  # bytes of each range that was asked for
        self._tokens: dict[str, float] = {}

    def bucket(self, folder: Path, session: ClientSession, *, known: bool = True) -> GcsBucket:
        """A fresh bucket, as a new process would build it; `folder` is for its key."""
        file = folder / f"storage-{known}.json"
        file.write_text(json.dumps(self.credentials(known=known)))
        return GcsBucket(f"gs://{BUCKET}/bench", Account(str(file)), session, self.clock, self.url)

    def names(self) -> list[str]:
        """The paths of the objects within their runs."""
        return sorted(name.split("/", 3)[3] for name in self.objects)

    def middlewares(self) -> list[Any]:
        return [self._trouble]

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/token", self._token)
        app.router.add_post("/upload/storage/v1/b/{bucket}/o", self._begin)
        app.router.add_put("/upload/storage/v1/b/{bucket}/o", self._put)
        app.router.add_delete("/upload/storage/v1/b/{bucket}/o", self._close)
        app.router.add_get("/storage/v1/b/{bucket}/o/{object}", self._get)
        app.router.add_delete("/storage/v1/b/{bucket}/o/{object}", self._delete)
        app.router.add_get("/{bucket}/{object:.+}", self._signed_get)

    def move(self) -> None:
        """Sessions last a week."""
        for session in self.sessions.values():
            if self.clock() - session.made_at > WEEK_S:
                session.over = session.over or 410

    def refusal(self) -> web.Response:
        return self._error(401, "Invalid Credentials")

    @web.middleware
    async def _trouble(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.calls[request.match_info.handler.__name__.strip("_")] += 1
        self.move()
        if self.faults.busy and request.path != "/token":
            self.faults.busy -= 1
            await request.read()
            return web.Response(status=503, text="come again")
        answer: web.StreamResponse = await handler(request)
        return answer

    # ---- JSON, with a token -----------------------------------------------------------------------------------------

    async def _token(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        try:
            # clients name Google's own address, wherever they were told to ask
            audience = "https://oauth2.googleapis.com/token"
            said = jwt.decode(str(form["assertion"]), key(known=True).public_key(), ["RS256"], audience=audience)
        except jwt.InvalidTokenError:
            return web.json_response({"error": "invalid_grant", "error_description": "Bad key."}, status=400)
        assert "devstorage" in said["scope"]
        token = f"token-{len(self._tokens)}"
        self._tokens[token] = time.time() + 3600
        return web.json_response({"access_token": token, "expires_in": 3600, "token_type": "Bearer"})

    def _refused(self, request: web.Request, body: Any = None) -> web.Response | None:
        path = request.rel_url.raw_path.removeprefix("/upload")
        query = {name: value for name, value in request.query.items() if name not in ("uploadType", "upload_id")}
        self.violations += self._judge.check_request(request.method, path, query, body)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self._tokens.get(token, 0.0) < time.time():
            return self.refusal()
        if self.faults.forbidden:
            return self._error(403, "benchbot does not have storage.objects access to the Google Cloud Storage bucket.")
        if request.match_info["bucket"] != BUCKET:
            return self._error(404, "The specified bucket does not exist.")
        return None

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        no = self._refused(request, body)
        if no is not None:
            return no
        assert request.query["uploadType"] == "resumable"
        if request.query.get("ifGenerationMatch") != "0":
            self.violations.append("an upload that may overwrite")
        name = request.query["name"]
        if name in self.objects:
            return self._error(412, "At least one of the pre-conditions you specified did not hold.")
        upload = f"session-{len(self.sessions)}"
        size = int(request.headers["X-Upload-Content-Length"])
        self.sessions[upload] = Session(name, size, body["md5Hash"], self.clock())
        way = f"{self.url}/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&upload_id={upload}"
        return web.Response(headers={"Location": way})

    async def _get(self, request: web.Request) -> web.StreamResponse:
        no = self._refused(request)
        if no is not None:
            return no
        name = request.match_info["object"]
        if name not in self.objects:
            return self._error(404, f"No such object: {BUCKET}/{name}")
        if request.query.get("alt") == "media":
            return self._media(request, self.objects[name].data)
        return self._said(name)

    def _media(self, request: web.Request, data: bytes) -> web.Response:
        some = request.http_range
        if some.start is None:
            return web.Response(body=data)
        if some.start >= len(data):
            return self._error(416, "The requested range cannot be satisfied.")
        piece = data[some.start : some.stop]
        self.pieces.append(len(piece))
        place = f"bytes {some.start}-{some.start + len(piece) - 1}/{len(data)}"
        return web.Response(status=206, body=piece, headers={"Content-Range": place})

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        no = self._refused(request)
        if no is not None:
            return no
        name = request.match_info["object"]
        if self.objects.pop(name, None) is None:
            return self._error(404, f"No such object: {BUCKET}/{name}")
        return web.Response(status=204)

    def _said(self, name: str) -> web.Response:
        kept = self.objects[name]
        body = {
            "kind": "storage#object",
            "id": f"{BUCKET}/{name}/1",
            "name": name,
            "bucket": BUCKET,
            "generation": "1",
            "size": str(len(kept.data)),
            "md5Hash": kept.md5,
            "contentType": "application/octet-stream",
            "timeCreated": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(kept.made_at)),
        }
        self.violations += self._judge.check_response("GET", f"/storage/v1/b/{BUCKET}/o/x", 200, body)
        return web.json_response(body)

    def _error(self, status: int, sentence: str) -> web.Response:
        body = {"error": {"code": status, "message": sentence, "errors": [{"message": sentence, "domain": "global"}]}}
        self.violations += self._judge.check_response("GET", f"/storage/v1/b/{BUCKET}/o/x", status, body)
        return web.json_response(body, status=status)

    # ---- sessions, without any credential ---------------------------------------------------------------------------

    def _session(self, request: web.Request) -> Session | None:
        if "Authorization" in request.headers:
            self.violations.append("a credential was sent to a session")
        return self.sessions.get(request.query.get("upload_id", ""))

    async def _put(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if self.faults.deaf:
            assert request.transport
            request.transport.abort()
            raise ConnectionResetError
        found = re.fullmatch(r"bytes (?:\*|(\d+)-(\d+))/(\d+)", request.headers["Content-Range"])
        assert found
        if session is None or session.over:
            await request.read()
            return web.Response(status=session.over if session else 404)
        if session.name in self.objects:
            await request.read()
            return self._said(session.name)
        first, last, size = (int(part) if part is not None else None for part in found.groups())
        if size != session.size:
            session.over = 400
            return web.Response(status=400, text="another size than was announced")
        if first is not None and last is not None:
            if request.content_length != last - first + 1 or first > len(session.data):
                return web.Response(status=503 if first > len(session.data) else 400)
            if last + 1 != size and (last - first + 1) % QUANTUM:
                return web.Response(status=400, text="a piece is a multiple of 256 KiB")
            await self._take(request, session, first)
        if len(session.data) == size:
            return self._finish(session)
        headers = {"Range": f"bytes=0-{len(session.data) - 1}"} if session.data else {}
        return web.Response(status=308, headers=headers)

    async def _take(self, request: web.Request, session: Session, first: int) -> None:
        came = bytearray()
        async for piece in request.content.iter_any():
            came += piece
            if self.faults.cut_after is not None and len(came) >= self.faults.cut_after:
                self.faults.cut_after, self.faults.deaf = None, self.faults.then_deaf
                whole = (first + len(came)) // QUANTUM * QUANTUM
                session.data[first:] = came[: max(0, whole - first)]
                self.puts.append((session.name, len(came)))
                assert request.transport
                request.transport.abort()
                raise ConnectionResetError
        self.puts.append((session.name, len(came)))
        session.data[first:] = came

    def _finish(self, session: Session) -> web.StreamResponse:
        kept = Kept(bytes(session.data), self.clock())
        if session.name in self.objects:
            session.over = 412
        elif kept.md5 != session.md5:
            session.over = 400
        if session.over:
            return web.Response(status=session.over)
        self.objects[session.name] = kept
        return self._said(session.name)

    async def _close(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is None:
            return web.Response(status=404)
        session.over = 499
        return web.Response(status=499)

    # ---- signed addresses -------------------------------------------------------------------------------------------

    async def _signed_get(self, request: web.Request) -> web.StreamResponse:
        no = self.wrong_signature(request)
        if no:
            return web.Response(status=403, text=f"<Error><Code>{no}</Code></Error>", content_type="application/xml")
        name = request.match_info["object"]
        if name not in self.objects:
            return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")
        headers = {
            "Content-Disposition": request.query["response-content-disposition"],
            "Content-Type": request.query["response-content-type"],
            "X-Content-Type-Options": "nosniff",
        }
        return web.Response(body=self.objects[name].data, headers=headers)

    def wrong_signature(self, request: web.Request) -> str:
        """Why the address is not good; empty when it is."""
        if "Authorization" in request.headers:
            self.violations.append("a credential was sent with a signed address")
        query = dict(request.query)
        try:
            signature = bytes.fromhex(query.pop("X-Goog-Signature"))
            stamp, lives_s = query["X-Goog-Date"], int(query["X-Goog-Expires"])
            signed = query["X-Goog-SignedHeaders"].split(";")
            email, scope = query["X-Goog-Credential"].split("/", 1)
        except (KeyError, ValueError):
            return "AuthenticationRequired"
        at = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
        if not 0 < lives_s <= WEEK_S or scope != f"{stamp[:8]}/auto/storage/goog4_request" or email != self.email:
            return "InvalidArgument"
        if not at - 900 <= self.clock() <= at + lives_s:
            return "ExpiredToken"
        pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
        headers = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in sorted(signed))
        text = "&".join("=".join(pair) for pair in pairs)
        canonical = "\n".join(
            [request.method, request.rel_url.raw_path, text, headers, ";".join(signed), "UNSIGNED-PAYLOAD"]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = f"GOOG4-RSA-SHA256\n{stamp}\n{scope}\n{digest}".encode()
        try:
            key(known=True).public_key().verify(signature, to_sign, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return "SignatureDoesNotMatch"
        return ""
