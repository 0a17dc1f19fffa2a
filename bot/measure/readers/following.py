"""A log folder while it is being written: only what was added is read, and the curves stay whole.

Event files are fed to their reader as they grow. Rows of JSON lines and CSV are read anew when their file has changed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot.measure.readers import MOST_FILES, files_of, join, reader_of, run_of
from bot.measure.readers.merging import FileContents
from bot.measure.readers.tailing import Tail
from bot.measure.readers.tfevents import EventReader
from bot.measure.readers.tfevents import fits as is_event_file
from bot.measure.reading import Reading

_MOST_AT_ONCE = 32 << 20


@dataclass(slots=True)
class Follower:
    """Follows `folder`, which may not exist yet."""

    folder: Path
    _followed: dict[Path, "_EventFile | _Rows"] = field(default_factory=dict)

    def poll(self) -> Reading | None:
        """Everything as it stands, None when nothing has changed since the last time.

        At most 32 MiB of each event file are taken in at once; the next call goes on.
        """
        changed = False
        found: dict[str, list[FileContents]] = {}
        for path in files_of(self.folder)[:MOST_FILES]:
            followed = self._followed.get(path) or _follow(path.name)
            if followed is None:
                continue
            self._followed[path] = followed
            try:
                changed |= followed.poll(path)
            except OSError:
                # gone between two looks, or not to be read: the end of the run tells
                continue
            found.setdefault(run_of(path, self.folder), []).append(followed.contents)
        return join(found, []) if changed else None


@dataclass(slots=True)
class _EventFile:
    """One event file, fed to its reader as it grows."""

    _reader: EventReader = field(default_factory=EventReader)
    _tail: Tail = field(default_factory=Tail)

    @property
    def contents(self) -> FileContents:
        return self._reader.contents

    def poll(self, path: Path) -> bool:
        """Whether something was added. Raises OSError."""
        data, anew = self._tail.read(path, _MOST_AT_ONCE)
        if anew:
            self._reader = EventReader()
        self._reader.feed(data)
        return anew or bool(data)


@dataclass(slots=True)
class _Rows:
    """One file of rows, as it was when it was last read."""

    _read: Callable[[Path], FileContents]
    contents: FileContents = field(default_factory=FileContents)
    _stamp: tuple[int, int] = (-1, 0)

    def poll(self, path: Path) -> bool:
        """Whether it has changed. Raises OSError."""
        stat = path.stat()
        stamp = (stat.st_size, stat.st_mtime_ns)
        if stamp == self._stamp:
            return False
        self.contents, self._stamp = self._read(path), stamp
        return True


def _follow(name: str) -> _EventFile | _Rows | None:
    if is_event_file(name):
        return _EventFile()
    read = reader_of(name)
    return _Rows(read) if read else None
