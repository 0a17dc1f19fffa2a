"""Going on where an earlier machine was taken away: the files that it had shipped of a run come back."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

from runners import protocol
from runners.agent import trees
from runners.agent.link import Link
from runners.agent.logs import LogKeeper
from runners.agent.work import KeptFile, RunWork

_TRIES = 3
_PIECE_BYTES = 1024 * 1024


def bring_back(link: Link, run: RunWork, outputs: Path, owner: int | None, log: LogKeeper) -> bool:
    """Fetch what was kept of a run into its folders and its log. True when there are checkpoints to go on from."""
    if not run.kept:
        return False
    found = False
    for file in run.kept:
        is_log = file.path == protocol.LOG_FILE
        target = outputs / ("home" if is_log else "") / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w+b") as into:
            whole = _fetch(link, run.id, file, into)
            if whole and is_log:
                into.seek(0)
                log.add(line.decode("utf-8", "replace").rstrip("\n") for line in into)
        if is_log or not whole:
            target.unlink()
        if not whole:
            log.add([f"[benchbot] {file.path} could not be brought back"])
        found = found or (whole and file.path.startswith(f"{protocol.CHECKPOINT_FOLDER}/"))
    for name in (protocol.LOG_FOLDER, protocol.CHECKPOINT_FOLDER):
        trees.hand_over(outputs / name, owner)
    log.add(["[benchbot] the machine was taken away; from here on another one"])
    return found


def _fetch(link: Link, run: str, file: KeptFile, into: BinaryIO) -> bool:
    for _ in range(_TRIES):
        into.seek(0)
        into.truncate()
        try:
            link.get(run, file.path, into)
        except OSError:
            continue
        if not file.sha256 or _digest(into) == file.sha256:
            return True
    return False


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
        digest.update(piece)
    return digest.hexdigest()
