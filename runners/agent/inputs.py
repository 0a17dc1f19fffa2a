"""Inputs of benchmarks: fetched once, checked against their hash, kept by it, read-only for the code."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from runners.agent.commands import Stop
from runners.agent.work import InputWork

_TRIES = 5
_PIECE_BYTES = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class InputError(Exception):
    """An input cannot be had; the text is for people."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, so that two leases do not make the same thing at once."""
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fetch(item: InputWork, cache: Path, stop: Stop) -> Path:
    """Path of the input's file; it has the name that its address gives it. Raises InputError."""
    digest = item.sha256.lower()
    if not _SHA256.match(digest):
        raise InputError(f"input {item.name}: {item.sha256!r} is not a sha256 in hex")
    if urlsplit(item.url).scheme not in ("http", "https"):
        raise InputError(f"input {item.name}: only http and https addresses can be fetched, not {item.url}")
    folder = cache / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", unquote(urlsplit(item.url).path).rsplit("/", 1)[-1]).lstrip(".") or "input"
    kept = folder / digest / name[-100:]
    with locked(folder / f"{digest}.lock"):
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            partial = kept.parent / ".partial"
            _download(item, digest, partial, stop)
            partial.chmod(0o444)
            partial.rename(kept)
            kept.parent.chmod(0o755)
    return kept


def _download(item: InputWork, digest: str, partial: Path, stop: Stop) -> None:
    trouble = ""
    for number in range(_TRIES):
        try:
            with urllib.request.urlopen(item.url, timeout=60) as answer, partial.open("wb") as file:
                found = _copy(answer, file, stop)
        except urllib.error.HTTPError as error:
            trouble = f"the server answered {error.code}"
            if error.code < 500 and error.code != 429:
                break
        except (OSError, ValueError) as error:
            trouble = str(error)
        else:
            if found == digest:
                return
            partial.unlink()
            raise InputError(f"input {item.name}: sha256 is {found}, the configuration says {digest}")
        with stop.changed:
            if stop.changed.wait_for(lambda: bool(stop.reason), 2.0**number):
                break
    raise InputError(f"input {item.name} could not be fetched from {item.url}: {trouble or stop.reason}")


def _copy(answer: BinaryIO, file: BinaryIO, stop: Stop) -> str:
    digest = hashlib.sha256()
    while True:
        piece = answer.read(_PIECE_BYTES)
        if not piece:
            os.fsync(file.fileno())
            return digest.hexdigest()
        if stop.reason:
            raise OSError("stopped")
        digest.update(piece)
        file.write(piece)
