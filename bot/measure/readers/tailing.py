"""The end of a file that somebody else appends to."""

from dataclasses import dataclass
from pathlib import Path

# so many bytes before the place where reading goes on tell whether the file is still the same one
_SEAM = 64


@dataclass(slots=True)
class Tail:
    """How far a file has been read. A file that was begun anew is noticed by what stands before that place."""

    place: int = 0
    _seam: bytes = b""
    _stamp: tuple[int, int] = (-1, 0)

    def read(self, path: Path, most: int) -> tuple[bytes, bool]:
        """At most `most` bytes that were added, and whether they stand at the beginning of another file than before.

        Raises OSError.
        """
        stat = path.stat()
        stamp = (stat.st_size, stat.st_mtime_ns)
        if stamp == self._stamp and self.place == stat.st_size:
            return b"", False
        self._stamp = stamp
        with path.open("rb", buffering=0) as file:
            file.seek(self.place - len(self._seam))
            anew = file.read(len(self._seam)) != self._seam
            if anew:
                self.place, self._seam = 0, b""
                file.seek(0)
            data = file.read(most)
        self.place += len(data)
        self._seam = (self._seam + data)[-_SEAM:]
        return data, anew
