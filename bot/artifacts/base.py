"""Where the files of runs are kept. Keys are run id and a relative path that has been checked here."""

from abc import ABC, abstractmethod
from pathlib import Path, PurePosixPath

MAX_PATH = 400


class WrongOffset(Exception):
    """An append did not start where the stored file ends; `offset` is that end."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the file ends at {offset}")
        self.offset = offset


def checked(path: str) -> PurePosixPath:
    """A relative path that stays below its run: no `..`, no absolute, no empty or hidden-name tricks.

    Raises ValueError with a sentence for the agent.
    """
    pure = PurePosixPath(path)
    bad = not path or len(path) > MAX_PATH or path != str(pure) or pure.is_absolute() or ".." in pure.parts
    if bad or any(ord(c) < 32 or c == "\\" for c in path):
        raise ValueError("a path is relative, plain and at most 400 characters long")
    return pure


class ArtifactStore(ABC):
    """Files of runs: appended while the run goes on, read by pages and readers afterwards."""

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
        """A local folder that holds the run's files, for readers and TensorBoard."""

    @abstractmethod
    async def truncate(self, run_id: str, path: str, size: int) -> None:
        """Cut a file back, before the agent sends the rest again."""

    @abstractmethod
    async def rename(self, run_id: str, path: str, target: str) -> None:
        """Give a file another name, in place of what had it."""

    @abstractmethod
    async def remove(self, run_id: str, path: str) -> None:
        """Remove a file; one that is not there is fine."""
