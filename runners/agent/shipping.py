"""The files of a run on their way to the bot: what grew while it runs, all of it at the end, and proof that it is."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from runners import protocol
from runners.agent import trees
from runners.agent.link import FIRST_PAUSE_S, LONGEST_PAUSE_S, LeaseOverError, Link, RefusedError, SilentError
from runners.agent.uploading import BucketSilentError, NotTakenError, Upload

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
        self._waiting: set[str] = set()
        self._seen: dict[str, trees.Found] = {}
        self._measured: dict[str, tuple[trees.Found, dict[str, Any]]] = {}
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
            self._link.close()

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
                if path not in self._waiting:
                    try:
                        self._send(path, local, patience_s=0.0)
                    except RefusedError:
                        # more than the bot takes while it grows; in the end the manifest says where it goes
                        self._waiting.add(path)
        except (SilentError, LeaseOverError):
            # the end of the run sends all of it; that a lease is over is heard by the heartbeat
            return

    def _save_checkpoints(self, ended: threading.Event) -> None:
        """Send checkpoints that are whole. An older one of the same name stays until the newer one has arrived."""
        for path, local in self._files((protocol.CHECKPOINT_FOLDER,), set()):
            before, self._seen[path] = self._seen.get(path), local.found
            if path == protocol.LOG_FILE or local.found != before or local.found == self._saved.get(path):
                continue
            try:
                if self._settle({path: local}, 0.0):
                    self._saved[path] = local.found
            except (SilentError, BucketSilentError, LeaseOverError, RefusedError):
                return
            if ended.is_set():
                return

    def look(self) -> None:
        """Find out what will be left out, so that the log can still say it."""
        for _ in self._files((protocol.LOG_FOLDER, protocol.CHECKPOINT_FOLDER), self.notes):
            pass

    def complete(self, patience_s: float, *, at_its_end: bool = True, last: bool = False) -> bool:
        """Send everything that the bot wants; False when it cannot be had now. Raises LeaseOverError.

        Checkpoints that are not there any more are kept unless the run is `at_its_end`. On the `last` try a bucket that
        stays away costs what it should have kept, and not the results.
        """
        local = dict(self._files((protocol.LOG_FOLDER, protocol.CHECKPOINT_FOLDER), set()))
        try:
            if not self._settle(local, patience_s, complete=at_its_end):
                print(f"run {self._run}: the bot still asks for files after all rounds", flush=True)
        except BucketSilentError as silent:
            if not last:
                return False
            print(f"run {self._run}: not all is kept, the bucket stays away: {silent}", flush=True)
            return True
        except SilentError:
            return False
        return True

    def _settle(self, local: dict[str, _Local], patience_s: float, *, complete: bool = False) -> bool:
        """Ask what is wanted and send it, until it is nothing. Raises SilentError and BucketSilentError."""
        until, pause, rounds = time.monotonic() + patience_s, FIRST_PAUSE_S, 0
        while rounds < _ROUNDS + len(local) // protocol.MOST_WANTED:
            wanted, later = self._manifest(local, patience_s, complete)
            if not wanted and not later:
                return True
            # what goes through the bot first: numbers are read from it
            silent: BucketSilentError | None = None
            for item in sorted(wanted, key=lambda item: "url" in item):
                try:
                    self._deliver(item, local[item["path"]], patience_s)
                except BucketSilentError as error:
                    silent = error
                    break
            if later and not wanted:
                if time.monotonic() + pause > until or self._link.gone.wait(pause):
                    silent = BucketSilentError("the bot cannot reach it")
                pause = min(pause * 2, LONGEST_PAUSE_S)
            else:
                rounds += 1
            if silent is not None:
                # what came through the bot meanwhile is confirmed all the same
                self._manifest(local, patience_s, complete)
                raise silent
        return False

    def _manifest(
        self, local: dict[str, _Local], patience_s: float, complete: bool
    ) -> tuple[list[dict[str, Any]], bool]:
        """What the bot wants, and whether there is more that it cannot look at now."""
        files = []
        for path, file in local.items():
            if path not in self._refused:
                if path not in self._measured or self._measured[path][0] != file.found:
                    self._measured[path] = file.found, _measure(file, self._owner_of(path))
                files.append({"path": path, "sent_as": _sent_as(path), **self._measured[path][1]})
        answer = self._link.post(f"runs/{self._run}/manifest", {"files": files, "complete": complete}, patience_s)
        for item in answer.get("refused", ()):
            self._not_kept(item["path"], item["sentence"])
        return [item for item in answer.get("wanted", ()) if item["path"] in local], bool(answer.get("later"))

    def _deliver(self, item: dict[str, Any], local: _Local, patience_s: float) -> None:
        path = item["path"]
        if "url" in item:
            self._upload(path, local, item["url"], patience_s)
            return
        name, offset = _sent_as(path), int(item["offset"])
        self._sent[name] = _Sent(offset, local.found.inode, began=offset > 0)
        try:
            self._send(name, local, patience_s)
        except RefusedError as no:
            self._not_kept(path, str(no))

    def _upload(self, path: str, local: _Local, url: str, patience_s: float) -> None:
        file = trees.open_below(local.folder, local.found.path, self._owner_of(path))
        if file is None:
            return
        with file:
            try:
                Upload(url, file, local.found.size, self._link.gone).run(patience_s)
            except NotTakenError as no:
                # the next manifest asks for it again, at another address
                print(f"run {self._run}: {path} was not taken: {no}", flush=True)

    def _not_kept(self, path: str, why: str) -> None:
        self._refused.add(path)
        print(f"run {self._run}: {path} is not kept, {why}", flush=True)

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
        if sent.began and sent.offset >= local.found.size:
            return
        file = trees.open_below(local.folder, local.found.path, self._owner_of(path))
        if file is None:
            return
        with file:
            self._append(path, sent, file, patience_s)

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


def _sent_as(path: str) -> str:
    """The name under which a file travels: an older checkpoint of its name stays until the newer one has arrived."""
    return f"{path}.part" if path.startswith(f"{protocol.CHECKPOINT_FOLDER}/") else path


def _measure(local: _Local, owner: int | None) -> dict[str, Any]:
    """Size and hashes of a file; MD5 is what buckets check."""
    sha256, md5, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
    file = trees.open_below(local.folder, local.found.path, owner)
    if file is not None:
        with file:
            for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
                sha256.update(piece)
                md5.update(piece)
                size += len(piece)
    return {"size": size, "sha256": sha256.hexdigest(), "md5": md5.hexdigest()}
