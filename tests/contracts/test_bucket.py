"""The bucket: sessions for one object of one size and hash, signed addresses, and what goes wrong on the way."""

import asyncio
import hashlib
import json
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from unittest import mock
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from aiohttp import ClientError, ClientSession
from yarl import URL

from bot.artifacts.base import BucketAway, BucketRefused, Copy, Seen, SessionOver
from bot.artifacts.gcs import LINK_LIVES_S, PIECE_BYTES, GcsBucket
from bot.artifacts.signing import Account
from tests.harness.storage import BUCKET, QUANTUM, WEEK_S, CloudStorage

DATA = bytes(range(256)) * 4_096  # 1 MiB
NAME = "checkpoints/zwölf ~best+1.pt"


@dataclass
class Scene:
    """A bucket before its service, with a clock that is moved by hand."""

    folder: Path
    session: ClientSession
    now: float = 1_790_000_000.0
    storage: CloudStorage = None  # type: ignore[assignment]
    bucket: GcsBucket = None  # type: ignore[assignment]

    def file(self, data: bytes) -> Path:
        """A file with these bytes."""
        path = self.folder / "file"
        path.write_bytes(data)
        return path

    def account(self) -> Account:
        """The account whose key the service knows."""
        key_file = self.folder / "key.json"
        key_file.write_text(json.dumps(self.storage.credentials()))
        return Account(str(key_file))

    async def keep(self, data: bytes = DATA, object_id: str = "o1") -> str:
        """The address of an object that has been made."""
        address = self.bucket.address("r1", object_id, NAME)
        session = await self.bucket.begin(address, seen(data))
        await self.bucket.send(session, self.file(data), len(data))
        return address


def seen(data: bytes) -> Seen:
    return Seen(len(data), hashlib.md5(data).hexdigest())


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with ClientSession() as session:
        made = Scene(tmp_path, session)
        made.storage = CloudStorage(lambda: made.now)
        await made.storage.start()
        made.bucket = made.storage.bucket(tmp_path, session)
        yield made
        await made.storage.stop()
    assert made.storage.violations == []


# ---- sessions -------------------------------------------------------------------------------------------------------


async def test_an_object_is_made_once(scene: Scene) -> None:
    address = await scene.keep()
    assert await scene.bucket.look(address) == seen(DATA)
    with pytest.raises(BucketRefused, match="412"):
        await scene.bucket.begin(address, seen(b"other"))
    async with aclosing(scene.bucket.read(address)) as pieces:
        assert b"".join([piece async for piece in pieces]) == DATA


async def test_the_beginning_of_an_object_is_all_that_is_sent(scene: Scene) -> None:
    address = await scene.keep()
    assert await scene.bucket.beginning(address, 1000) == DATA[:1000]
    assert scene.storage.pieces == [1000]
    assert await scene.bucket.beginning(address, 2 * len(DATA)) == DATA
    assert await scene.bucket.beginning(await scene.keep(b"", "o2"), 8) == b""
    with pytest.raises(FileNotFoundError):
        await scene.bucket.beginning(scene.bucket.address("r1", "o9", NAME), 8)
    scene.storage.faults.busy = 1
    with pytest.raises(BucketAway):
        await scene.bucket.beginning(address, 8)


async def test_two_sessions_for_one_name_make_one_object(scene: Scene) -> None:
    address = scene.bucket.address("r1", "o1", NAME)
    first, second = [await scene.bucket.begin(address, seen(data)) for data in (b"first", b"other")]
    await scene.bucket.send(first, scene.file(b"first"), 5)
    await scene.bucket.send(second, scene.file(b"other"), 5)
    assert await scene.bucket.look(address) == seen(b"first"), "whoever sent the second one sees that it is another"


async def test_a_session_takes_no_other_size_and_no_other_bytes(scene: Scene) -> None:
    address = scene.bucket.address("r1", "o1", NAME)
    session = await scene.bucket.begin(address, seen(DATA))
    with pytest.raises(SessionOver):
        await scene.bucket.send(session, scene.file(DATA + b"more"), len(DATA) + 4)
    session = await scene.bucket.begin(address, seen(DATA))
    with pytest.raises(SessionOver):
        await scene.bucket.send(session, scene.file(b"x" * len(DATA)), len(DATA))
    assert await scene.bucket.look(address) is None


async def test_what_has_arrived_is_not_sent_again(scene: Scene) -> None:
    data = DATA * 9 + b"tail"
    address = scene.bucket.address("r1", "o1", NAME)
    session = await scene.bucket.begin(address, seen(data))
    headers = {"Content-Range": f"bytes 0-{3 * QUANTUM - 1}/{len(data)}"}
    async with scene.session.put(URL(session, encoded=True), data=data[: 3 * QUANTUM], headers=headers) as answer:
        assert answer.status == 308
    assert await scene.bucket.offset(session, len(data)) == 3 * QUANTUM
    await scene.bucket.send(session, scene.file(data), len(data))
    assert await scene.bucket.offset(session, len(data)) is None
    assert [sent for _, sent in scene.storage.puts[1:]] == [PIECE_BYTES, len(data) - PIECE_BYTES - 3 * QUANTUM]
    assert await scene.bucket.look(address) == seen(data)


async def test_a_session_ends(scene: Scene) -> None:
    address = scene.bucket.address("r1", "o1", NAME)
    old = await scene.bucket.begin(address, seen(DATA))
    scene.now += WEEK_S + 1
    with pytest.raises(SessionOver):
        await scene.bucket.offset(old, len(DATA))
    session = await scene.bucket.begin(address, seen(DATA))
    await scene.bucket.discard(address, session)
    with pytest.raises(SessionOver):
        await scene.bucket.send(session, scene.file(DATA), len(DATA))
    await scene.bucket.discard(address, session)
    assert scene.storage.objects == {}


async def test_a_file_that_became_shorter(scene: Scene) -> None:
    session = await scene.bucket.begin(scene.bucket.address("r1", "o1", NAME), seen(DATA))
    with pytest.raises(SessionOver):
        await scene.bucket.send(session, scene.file(b""), len(DATA))


# ---- signed addresses -----------------------------------------------------------------------------------------------


async def _get(scene: Scene, url: str, method: str = "GET") -> int:
    async with scene.session.request(method, URL(url, encoded=True)) as answer:
        await answer.read()
        return answer.status


async def test_a_link_is_good_for_one_object_and_some_minutes(scene: Scene) -> None:
    address, other = await scene.keep(), await scene.keep(b"other", "o2")
    link = await scene.bucket.link(address, "zwölf.pt")
    async with scene.session.get(URL(link, encoded=True)) as answer:
        assert await answer.read() == DATA
        assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''zw%C3%B6lf.pt"
        assert answer.headers["Content-Type"] == "application/octet-stream"
    parts = urlsplit(link)
    wrong = [
        link.replace("/o1/", "/o2/"),
        link[:-1] + ("0" if link[-1] != "0" else "1"),
        link.replace("attachment", "inline"),
        link.replace("application%2Foctet-stream", "text%2Fhtml"),
        link.replace(f"X-Goog-Expires={LINK_LIVES_S}", "X-Goog-Expires=604800"),
        link + "&generation=1",
        f"{parts.scheme}://{parts.netloc}{parts.path}",
        link.partition("&X-Goog-Signature")[0],
    ]
    assert other in {scene.bucket.address("r1", "o2", NAME)}
    assert [await _get(scene, url) for url in wrong] == [403] * len(wrong)
    assert await _get(scene, link, "DELETE") in (403, 405)
    scene.now += LINK_LIVES_S + 1
    assert await _get(scene, link) == 403


async def test_a_link_of_a_key_that_the_bucket_does_not_know(scene: Scene) -> None:
    address = await scene.keep()
    stranger = scene.storage.bucket(scene.folder, scene.session, known=False)
    with pytest.raises(BucketRefused, match="credentials_file"):
        await stranger.link(address, "x")


@pytest.mark.parametrize("name", ["plain.pt", "zwölf ~ + %2F?&=.pt"])
async def test_googles_own_client_signs_alike(scene: Scene, name: str) -> None:
    """The same key, object, time and headers: the same address, byte for byte."""
    storage = import_module("google.cloud.storage")
    key = scene.storage.credentials()
    account = import_module("google.oauth2.service_account").Credentials.from_service_account_info(key)
    blob = storage.Client(project="p", credentials=account).bucket(BUCKET).blob(f"bench/r1/o1/{name}")
    with mock.patch("google.cloud.storage._signing._NOW", lambda zone: datetime.fromtimestamp(scene.now, zone)):
        theirs = blob.generate_signed_url(
            expiration=timedelta(seconds=LINK_LIVES_S),
            version="v4",
            response_disposition=f"attachment; filename*=UTF-8''{quote(name, safe='')}",
            response_type="application/octet-stream",
            api_access_endpoint=scene.storage.url,
        )
    ours = await scene.bucket.link(scene.bucket.address("r1", "o1", name), name)
    assert sorted(parse_qsl(urlsplit(ours).query)) == sorted(parse_qsl(urlsplit(theirs).query))
    assert urlsplit(ours).path == urlsplit(theirs).path


# ---- faults ---------------------------------------------------------------------------------------------------------


async def test_a_bucket_that_asks_to_come_again(scene: Scene) -> None:
    address = await scene.keep()
    for call in (
        lambda: scene.bucket.look(address),
        lambda: scene.bucket.discard(address, ""),
        lambda: scene.bucket.begin(address, seen(DATA)),
        lambda: scene.bucket.offset(f"{scene.storage.url}/upload/storage/v1/b/{BUCKET}/o?upload_id=session-0", 1),
        lambda: scene.bucket.discard(
            address, f"{scene.storage.url}/upload/storage/v1/b/{BUCKET}/o?upload_id=session-0"
        ),
    ):
        scene.storage.faults.busy = 1
        with pytest.raises(BucketAway):
            await call()


async def test_a_bucket_that_is_not_there(scene: Scene, tmp_path: Path) -> None:
    await scene.bucket.look(scene.bucket.address("r1", "o1", NAME))
    with pytest.raises(BucketRefused, match="no bucket nobodys"):
        await scene.bucket.begin("gs://nobodys/x", seen(b"x"))
    scene.storage.faults.forbidden = True
    for call in (scene.bucket.look, lambda address: scene.bucket.begin(address, seen(b"x"))):
        with pytest.raises(BucketRefused, match=r"storage\.objects access"):
            await call(scene.bucket.address("r1", "o1", NAME))
    await scene.storage.stop()
    with pytest.raises(BucketAway):
        await scene.bucket.look(scene.bucket.address("r1", "o1", NAME))


async def test_accounts_that_cannot_be_used(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BucketRefused, match="credentials_file"):
        Account(str(tmp_path / "nothing.json"))
    await scene.storage.stop()
    with pytest.raises(BucketAway):
        await scene.bucket.look("gs://x/y")
    monkeypatch.setitem(sys.modules, "google.oauth2.service_account", None)
    with pytest.raises(BucketRefused, match="pip install"):
        Account("")


# ---- copies for readers ---------------------------------------------------------------------------------------------


async def test_a_copy_is_made_once_whole_and_right(scene: Scene, tmp_path: Path) -> None:
    address = await scene.keep()
    good = Copy("logs/a", address, len(DATA), hashlib.sha256(DATA).hexdigest())
    gone = Copy("logs/gone", scene.bucket.address("r1", "o9", "logs/gone"), 1, "0" * 64)
    folder = tmp_path / "run"
    await asyncio.gather(*(scene.bucket.bring(folder, [good, gone]) for _ in range(5)))
    assert (folder / "logs/a").read_bytes() == DATA
    assert scene.storage.calls["get"] == 1 + 5, "what is not there is asked for each time"
    wrong = Copy("logs/b", address, len(DATA), "0" * 64)
    with pytest.raises(BucketAway):
        await scene.bucket.bring(folder, [wrong])
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "logs"]


# ---- a second opinion: an emulator that others wrote ----------------------------------------------------------------


@asynccontextmanager
async def emulator(scene: Scene) -> AsyncIterator[GcsBucket]:
    """Our bucket before gcp-storage-emulator; tokens come from our own service."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = str(Path(sys.executable).with_name("gcp-storage-emulator"))
    words = [program, "start", "--host", "127.0.0.1", "--port", str(port), "--in-memory"]
    process = await asyncio.create_subprocess_exec(*words, stdout=DEVNULL, stderr=DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(500):
            try:
                async with scene.session.post(f"{url}/storage/v1/b?project=p", json={"name": BUCKET}) as answer:
                    assert answer.status == 200
                    break
            except ClientError:
                await asyncio.sleep(0.01)
        yield GcsBucket(f"gs://{BUCKET}/bench", scene.account(), scene.session, lambda: scene.now, url)
    finally:
        process.terminate()
        await process.wait()


async def test_an_emulator_agrees_on_how_an_upload_goes_on(scene: Scene) -> None:
    async with emulator(scene) as bucket:
        address = bucket.address("r1", "o1", "checkpoints/last.pt")
        session = await bucket.begin(address, seen(DATA))
        headers = {"Content-Range": f"bytes 0-{QUANTUM - 1}/{len(DATA)}"}
        async with scene.session.put(URL(session, encoded=True), data=DATA[:QUANTUM], headers=headers) as answer:
            assert answer.status == 308
        assert await bucket.offset(session, len(DATA)) == QUANTUM
        await bucket.send(session, scene.file(DATA), len(DATA))
        found = await bucket.look(address)
        assert found is not None
        assert found.size == len(DATA)
        async with aclosing(bucket.read(address)) as pieces:
            assert b"".join([piece async for piece in pieces]) == DATA
        assert await bucket.beginning(address, 1000) == DATA[:1000]
        await bucket.discard(address, "")
        await bucket.discard(address, "")
        assert await bucket.look(address) is None
