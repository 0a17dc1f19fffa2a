"""Folders that hostile code may have written: walked, read, handed over and removed without following its links."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple


class Found(NamedTuple):
    """A regular file below a folder: its path relative to it with /, and what tells a rewritten file apart."""

    path: str
    size: int
    inode: int
    changed_ns: int


def files_below(folder: Path, owner: int | None, notes: set[str]) -> Iterator[Found]:
    """Regular files below `folder` in order of their path. What is left out is said in `notes`.

    Links, devices, pipes, files of another `owner` (a hard link to somebody else's file) and names that cannot stand
    in a URL are left out.
    """
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        for base, folders, names, here in os.fwalk(".", dir_fd=root, follow_symlinks=False):
            folders.sort()
            for name in sorted(names):
                path = os.path.normpath(os.path.join(base, name))
                found = _look(here, name, path, owner)
                if isinstance(found, Found):
                    yield found
                elif found:
                    notes.add(f"{_printable(path)} was left out: {found}")
            for name in folders:
                if stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                    notes.add(f"{_printable(os.path.normpath(os.path.join(base, name)))} was left out: it is a link")
    except OSError as error:
        # the code may remove folders under our feet; the next walk sees the new state
        notes.add(f"not all of the folder could be read ({error.strerror})")
    finally:
        os.close(root)


def _look(here: int, name: str, path: str, owner: int | None) -> Found | str:
    try:
        info = os.stat(name, dir_fd=here, follow_symlinks=False)
    except OSError:
        return ""
    if stat.S_ISLNK(info.st_mode):
        return "it is a link"
    if not stat.S_ISREG(info.st_mode):
        return "it is not a regular file"
    if owner is not None and info.st_uid != owner:
        return "it belongs to another user"
    if _printable(path) != path:
        return "its name is not plain text"
    return Found(path, info.st_size, info.st_ino, info.st_mtime_ns)


def _printable(path: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in path.encode("utf-8", "replace").decode())


def open_below(folder: Path, path: str, owner: int | None) -> BinaryIO | None:
    """Open a file that `files_below` found; None when it has become something else since. No link is followed."""
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        *parents, name = path.split("/")
        for parent in parents:
            deeper = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = deeper
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    except OSError:
        return None
    finally:
        os.close(here)
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode) or (owner is not None and info.st_uid != owner):
        os.close(handle)
        return None
    return os.fdopen(handle, "rb")


def hand_over(folder: Path, uid: int | None) -> None:
    """Give a folder and all below it to a user; nothing to do without one. Links themselves change hands."""
    if uid is None:
        return
    os.chown(folder, uid, uid, follow_symlinks=False)
    for _, folders, names, here in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *names):
            os.chown(name, uid, uid, dir_fd=here, follow_symlinks=False)


def take_back(folder: Path) -> None:
    """Make a folder that another user filled ours and readable by everybody, writable by us alone."""
    os.chown(folder, 0, 0, follow_symlinks=False)
    os.chmod(folder, 0o755)
    for _, folders, names, here in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *names):
            os.chown(name, 0, 0, dir_fd=here, follow_symlinks=False)
            mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                os.chmod(name, 0o755, dir_fd=here)
            elif stat.S_ISREG(mode):
                os.chmod(name, 0o755 if mode & stat.S_IXUSR else 0o644, dir_fd=here)


def remove(folder: Path) -> None:
    """Remove a folder as far as it can be; folders without rights of their owner are opened first."""

    def again(function: object, path: str, _: object) -> None:
        try:
            os.chmod(os.path.dirname(path), 0o700)
            os.unlink(path)
        except OSError:
            return

    shutil.rmtree(folder, onerror=again)
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def remove_strays(uid: int) -> None:
    """Remove what a lease's user left in folders that everybody may write to; the next lease may get the same uid."""
    for place in ("/tmp", "/var/tmp", "/dev/shm"):
        try:
            entries = [entry for entry in os.scandir(place) if entry.stat(follow_symlinks=False).st_uid == uid]
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                remove(Path(entry.path))
            else:
                Path(entry.path).unlink()
