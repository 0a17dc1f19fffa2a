"""The files of a run on their way to the bot: what grew while it runs, all of it at the end, and proof that it is."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from runners import protocol
from runners.agent import trees
from runners.agent.link import LeaseOverError, Link, RefusedError, SilentError

MOST_FILES = 2000
LARGEST_FILE_BYTES = 4 * 1024**3
LARGEST_RUN_BYTES = 16 * 1024**3
_PIECE_BYTES = min(1024 * 1024, protocol.CHUNK_BYTES)
_EVERY_S = 1.0
# a checkpoint that has not changed for so many looks has been written to its end
_STILL_LOOKS = 5
# how often the bot may point somewhere else before a file waits for the manifest
_CONFLICTS = 5
_ROUNDS = 5


_SAME: Mapping[str, str] = {}


@dataclass
class _Sent:
    offset: int = 0
    inode: int = 0
    began: bool = False


@dataclass(frozen=True)
class _Local:
    """Where a file of the run lies here."""

    folder: Path
    found: trees.Found


class Shipment:
    """All files of one run. `outputs` holds its folders logs/ and checkpoints/, written by `owner`.

    `checkpoints_early`: they are sent while the run goes on, for a machine that may be taken away.
    """

    def __init__(self, link: Link, run: str, log: Path, outputs: Path, owner: int | None) -> None:
        self.notes: set[str] = set()
        self.checkpoints_early = False
        self._link = link
        self._run = run
        self._log = log
        self.outputs = outputs
        self._owner = owner
        self._sent: dict[str, _Sent] = {}
        self._refused: set[str] = set()
        self._seen: dict[str, trees.Found] = {}
        self._saved: dict[str, trees.Found] = {}

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """While inside, what grows is sent about every second, as far as the bot can be reached."""
        ended = threading.Event()

        def stream() -> None:
            looks = 0
            while not ended.wait(_EVERY_S):
                self._send_growth(ended)
                looks += 1
                if self.checkpoints_early and looks % _STILL_LOOKS == 0:
                    self._save_checkpoints(ended)

        thread = threading.Thread(target=stream, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _send_growth(self, ended: threading.Event) -> None:
        try:
            for path, local in self._files((protocol.LOG_FOLDER,), set()):
                if ended.is_set():
                    return
                self._send(path, local, patience_s=0.0)
        except (SilentError, LeaseOverError):
            # the end of the run sends all of it; that a lease is over is heard by the heartbeat
            return

    def _save_checkpoints(self, ended: threading.Event) -> None:
        """Send checkpoints that are whole. An older one of the same name stays until the newer one has arrived."""
        for path, local in self._files((protocol.CHECKPOINT_FOLDER,), set()):
            before, self._seen[path] = self._seen.get(path), local.found
            if path == protocol.LOG_FILE or local.found != before or local.found == self._saved.get(path):
                continue
            part = f"{path}.part"
            self._sent.pop(part, None)
            try:
                self._send(part, local, patience_s=0.0)
                if not self._manifest({path: local}, 0.0, sent_as={path: part}):
                    self._saved[path] = local.found
            except (SilentError, LeaseOverError, RefusedError):
                return
            if ended.is_set():
                return

    def look(self) -> None:
        """Find out what will be left out, so that the log can still say it."""
        for _ in self._files((protocol.LOG_FOLDER, protocol.CHECKPOINT_FOLDER), self.notes):
            pass

    def complete(self, patience_s: float, *, at_its_end: bool = True) -> bool:
        """Send everything until the bot wants nothing more; False when it cannot be reached. Raises LeaseOverError.

        Checkpoints that are not there any more are kept unless the run is `at_its_end`.
        """
        local = dict(self._files((protocol.LOG_FOLDER, protocol.CHECKPOINT_FOLDER), set()))
        for path, found in self._saved.items():
            if path in local and local[path].found == found:
                self._sent[path] = _Sent(found.size, found.inode, began=True)
        try:
            for path, file in local.items():
                self._send(path, file, patience_s)
            for _ in range(_ROUNDS):
                wanted = self._manifest(local, patience_s, complete=at_its_end)
                if not wanted:
                    return True
                for path, offset in wanted.items():
                    self._sent[path] = _Sent(offset, local[path].found.inode, began=offset > 0)
                    self._send(path, local[path], patience_s)
        except SilentError:
            return False
        print(f"run {self._run}: the bot still asks for files after {_ROUNDS} rounds", flush=True)
        return True

    def _manifest(
        self, local: dict[str, _Local], patience_s: float, *, complete: bool = False, sent_as: Mapping[str, str] = _SAME
    ) -> dict[str, int]:
        files = []
        for path, file in local.items():
            if path not in self._refused:
                size, digest = _measure(file, self._owner_of(path))
                files.append({"path": path, "size": size, "sha256": digest, "sent_as": sent_as.get(path, path)})
        answer = self._link.post(f"runs/{self._run}/manifest", {"files": files, "complete": complete}, patience_s)
        return {item["path"]: int(item["offset"]) for item in answer.get("wanted", ()) if item["path"] in local}

    def _files(self, folders: tuple[str, ...], notes: set[str]) -> Iterator[tuple[str, _Local]]:
        count, total = 0, 0
        for found in trees.files_below(self._log.parent, None, set()):
            if found.path == self._log.name:
                yield protocol.LOG_FILE, _Local(self._log.parent, found)
        for folder in folders:
            for found in trees.files_below(self.outputs / folder, self._owner, notes):
                path = f"{folder}/{found.path}"
                if found.size > LARGEST_FILE_BYTES:
                    notes.add(f"{path} was left out: {found.size} bytes are more than {LARGEST_FILE_BYTES}")
                elif count >= MOST_FILES or total + found.size > LARGEST_RUN_BYTES:
                    notes.add(f"not all files are kept: at most {MOST_FILES} files and {LARGEST_RUN_BYTES} bytes a run")
                    return
                else:
                    count, total = count + 1, total + found.size
                    yield path, _Local(self.outputs / folder, found)

    def _owner_of(self, path: str) -> int | None:
        return None if path == protocol.LOG_FILE else self._owner

    def _send(self, path: str, local: _Local, patience_s: float) -> None:
        sent = self._sent.setdefault(path, _Sent(inode=local.found.inode))
        if local.found.size < sent.offset or local.found.inode != sent.inode:
            # rewritten: offset 0 begins the file anew
            sent = self._sent[path] = _Sent(inode=local.found.inode)
        if path in self._refused or (sent.began and sent.offset >= local.found.size):
            return
        file = trees.open_below(local.folder, local.found.path, self._owner_of(path))
        if file is None:
            return
        with file:
            try:
                self._append(path, sent, file, patience_s)
            except RefusedError as no:
                self._refused.add(path)
                print(f"run {self._run}: {path} is not kept, {no}", flush=True)

    def _append(self, path: str, sent: _Sent, file: BinaryIO, patience_s: float) -> None:
        conflicts = 0
        while True:
            file.seek(sent.offset)
            data = file.read(_PIECE_BYTES)
            if sent.began and not data:
                return
            now = self._link.put(self._run, path, sent.offset, patience_s, data)
            sent.began = True
            if now != sent.offset + len(data):
                conflicts += 1
                if conflicts > _CONFLICTS:
                    return
            sent.offset = now


def _measure(local: _Local, owner: int | None) -> tuple[int, str]:
    digest = hashlib.sha256()
    size = 0
    file = trees.open_below(local.folder, local.found.path, owner)
    if file is not None:
        with file:
            piece = file.read(_PIECE_BYTES)
            while piece:
                digest.update(piece)
                size += len(piece)
                piece = file.read(_PIECE_BYTES)
    return size, digest.hexdigest()
