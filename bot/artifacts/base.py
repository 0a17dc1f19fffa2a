"""Where the files of runs are kept: on the server's disk, and in a bucket where the operator has one.

Keys on the disk are run id and a relative path that has been checked here. Nothing here knows rows.
"""

import asyncio
import hashlib
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from weakref import WeakValueDictionary

MAX_PATH = 400
_AT_ONCE = 8


class WrongOffset(Exception):
    """An append did not start where the stored file ends; `offset` is that end."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the file ends at {offset}")
        self.offset = offset


class BucketAway(OSError):
    """The bucket cannot be reached or asks to come again later; the same call may succeed then."""


class BucketRefused(Exception):
    """The bucket says no and will not change its mind; the text tells the operator what to do."""


class SessionOver(Exception):
    """An upload session does not take any more: it ran out, was cancelled, or its bytes were refused."""


def checked(path: str) -> PurePosixPath:
    """A relative path that stays below its run: no `..`, no absolute, no empty or hidden-name tricks.

    Raises ValueError with a sentence for the agent.
    """
    pure = PurePosixPath(path)
    # encode: no half of a pair of surrogates, which is a ValueError too
    bad = not path or len(path.encode()) > MAX_PATH or path != str(pure) or pure.is_absolute() or ".." in pure.parts
    if bad or any(ord(c) < 32 or c == "\\" for c in path):
        raise ValueError("a path is relative, plain and at most 400 bytes long")
    return pure


def md5_of(file: Path) -> str:
    """Hash of a file in hex digits, as buckets compute it too. Takes its time: for a thread."""
    with file.open("rb") as source:
        return hashlib.file_digest(source, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


class ArtifactStore(ABC):
    """Files on the server's disk: all of them, or with a bucket those that grow, and copies for readers."""

    @abstractmethod
    async def append(self, run_id: str, path: str, offset: int, data: bytes) -> int:
        """Write `data` at `offset`, which must be the end (a repeat of the last piece is fine); returns the new end.

        Offset 0 on a longer file starts it anew when the bytes differ. Raises WrongOffset.
        """

    @abstractmethod
    async def size(self, run_id: str, path: str) -> int:
        """Bytes stored, 0 when there is no such file."""

    @abstractmethod
    async def sha256(self, run_id: str, path: str) -> str:
        """Hash of what is stored, 64 hex digits."""

    @abstractmethod
    async def folder(self, run_id: str) -> Path:
        """The folder with the run's files that are here."""

    @abstractmethod
    async def truncate(self, run_id: str, path: str, size: int) -> None:
        """Cut a file back, before the agent sends the rest again."""

    @abstractmethod
    async def rename(self, run_id: str, path: str, target: str) -> None:
        """Give a file another name, in place of what had it."""

    @abstractmethod
    async def remove(self, run_id: str, path: str) -> None:
        """Remove a file; one that is not there is fine."""

    @abstractmethod
    async def usage(self) -> Sequence["Usage"]:
        """Every run that has files here, the least recently used first."""

    @abstractmethod
    async def forget(self, run_id: str) -> None:
        """Remove all files of a run."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the files of one run take here, and when somebody last asked for them (seconds since the epoch)."""

    run_id: str
    size: int
    used_at: float


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as the bucket has it: bytes, and their MD5 in hex digits."""

    size: int
    md5: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A file of a run to be copied from the bucket to the disk."""

    path: str
    address: str
    size: int
    sha256: str


class Bucket(ABC):
    """Objects that are written once. An `address` names one; a `session` is an address that takes its bytes, and
    gives whoever knows it the right to send exactly those."""

    def __init__(self) -> None:
        self._copying: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    @abstractmethod
    def address(self, run_id: str, object_id: str, path: str) -> str:
        """The address of an object that is to be made. No two ids have the same."""

    @abstractmethod
    async def begin(self, address: str, expected: Seen) -> str:
        """A session for one object that must not exist yet and has exactly this size and hash."""

    @abstractmethod
    async def offset(self, session: str, size: int) -> int | None:
        """How many bytes a session has taken; None when the object is whole. Raises SessionOver."""

    @abstractmethod
    async def send(self, session: str, file: Path, size: int) -> None:
        """Send what a session has not taken yet. Raises SessionOver."""

    @abstractmethod
    async def look(self, address: str) -> Seen | None:
        """The object, or None where there is none."""

    @abstractmethod
    async def discard(self, address: str, session: str) -> None:
        """Close the session and delete the object; what is not there is fine."""

    @abstractmethod
    async def link(self, address: str, name: str) -> str:
        """A URL that downloads the object as a file of this name for some minutes, for whoever has it."""

    @abstractmethod
    def read(self, address: str) -> AsyncIterator[bytes]:
        """The bytes of an object. Raises FileNotFoundError."""

    @abstractmethod
    async def beginning(self, address: str, size: int) -> bytes:
        """The first `size` bytes of an object, or all of a shorter one. Raises FileNotFoundError."""

    async def bring(self, folder: Path, files: Sequence[Copy]) -> None:
        """Copy to a folder what is not there yet. A copy appears whole or not at all, and is made once."""
        lock = self._copying.setdefault(folder, asyncio.Lock())
        async with lock:
            missing = await asyncio.to_thread(lambda: [one for one in files if not (folder / one.path).is_file()])
            places = asyncio.Semaphore(_AT_ONCE)

            async def copy(one: Copy) -> None:
                async with places:
                    await self._copy(folder, one)

            await asyncio.gather(*(copy(one) for one in missing))

    async def _copy(self, folder: Path, one: Copy) -> None:
        target = folder / checked(one.path)
        half = folder / f".{secrets.token_hex(8)}"
        digest, size = hashlib.sha256(), 0
        try:
            await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
            with await asyncio.to_thread(half.open, "wb") as file:
                async for piece in self.read(one.address):
                    await asyncio.to_thread(file.write, piece)
                    digest.update(piece)
                    size += len(piece)
            if (size, digest.hexdigest()) != (one.size, one.sha256):
                raise BucketAway(f"{one.address} came with other bytes than were kept")
            await asyncio.to_thread(os.replace, half, target)
        except FileNotFoundError:
            return  # somebody deleted it in the bucket: there is nothing to show
        finally:
            half.unlink(missing_ok=True)
