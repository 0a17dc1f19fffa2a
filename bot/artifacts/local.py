"""Artifacts in a folder on the server's disk."""

import asyncio
import hashlib
from pathlib import Path

from bot.artifacts.base import ArtifactStore, WrongOffset, checked


class LocalStore(ArtifactStore):
    """One folder per run below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, run_id: str, path: str) -> Path:
        return self._root / run_id / checked(path)

    async def append(self, run_id: str, path: str, offset: int, data: bytes) -> int:
        """See `ArtifactStore.append`; the write happens in a thread."""
        return await asyncio.to_thread(_append, self._path(run_id, path), offset, data)

    async def size(self, run_id: str, path: str) -> int:
        """See `ArtifactStore.size`."""
        file = self._path(run_id, path)
        return file.stat().st_size if file.is_file() else 0

    async def sha256(self, run_id: str, path: str) -> str:
        """See `ArtifactStore.sha256`; hashed in a thread."""
        return await asyncio.to_thread(_sha256, self._path(run_id, path))

    async def folder(self, run_id: str) -> Path:
        """See `ArtifactStore.folder`."""
        return self._root / run_id

    async def truncate(self, run_id: str, path: str, size: int) -> None:
        """See `ArtifactStore.truncate`."""
        file = self._path(run_id, path)
        if file.is_file():
            with file.open("r+b") as out:
                out.truncate(size)

    async def rename(self, run_id: str, path: str, target: str) -> None:
        """See `ArtifactStore.rename`."""
        self._path(run_id, path).replace(self._path(run_id, target))

    async def remove(self, run_id: str, path: str) -> None:
        """See `ArtifactStore.remove`."""
        self._path(run_id, path).unlink(missing_ok=True)


def _append(file: Path, offset: int, data: bytes) -> int:
    end = file.stat().st_size if file.is_file() else 0
    if offset > end:
        raise WrongOffset(end)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("r+b" if end else "w+b") as out:
        if offset < end:
            out.seek(offset)
            if out.read(len(data)) == data:
                return max(end, offset + len(data))  # the answer to this very piece was lost
            if offset > 0:
                raise WrongOffset(end)
            out.truncate(0)
        out.seek(offset)
        out.write(data)
    return offset + len(data)


def _sha256(file: Path) -> str:
    if not file.is_file():
        return hashlib.sha256().hexdigest()
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
