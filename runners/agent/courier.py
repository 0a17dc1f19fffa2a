"""Brings events to the bot in their order, from a spool on disk, without making the work wait; and the heartbeat."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runners.agent.link import LeaseOverError, Link, RefusedError, SilentError


class Courier:
    """The spool: what is put in survives our own death and is delivered once the bot answers."""

    def __init__(self, folder: Path, link: Link, gone: threading.Event, over: Callable[[], None]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._link = link
        self._gone = gone
        self._over = over
        self._changed = threading.Condition()
        self._waiting = sorted(folder.glob("*.json"))
        self._number = int(self._waiting[-1].stem) + 1 if self._waiting else 0
        self._thread = threading.Thread(target=self._deliver, daemon=True)
        self._thread.start()

    def tell(self, kind: str, **fields: object) -> None:
        """Queue an event."""
        with self._changed:
            path = self._folder / f"{self._number:08}.json"
            self._number += 1
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps({"kind": kind, **fields}))
            fresh.rename(path)
            self._waiting.append(path)
            self._changed.notify_all()

    def flush(self, patience_s: float) -> bool:
        """Wait until everything is delivered; False when it is not within `patience_s`, or nobody wants it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._gone.is_set(), patience_s)
            return not self._waiting

    def _deliver(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                path = self._waiting[0]
            try:
                self._link.post("event", json.loads(path.read_text()), patience_s=5.0)
            except (SilentError, LeaseOverError) as error:
                if isinstance(error, LeaseOverError):
                    self._over()
                if not self._gone.is_set():
                    continue
                with self._changed:
                    self._changed.notify_all()
                return
            except RefusedError as no:
                print(f"event {path.stem} was refused: {no}", flush=True)
            path.unlink()
            with self._changed:
                self._waiting.pop(0)
                self._changed.notify_all()


class Pulse:
    """The heartbeat: says what we are doing, hears when to stop and until when we may live."""

    def __init__(self, link: Link, every_s: float, heard: Callable[[Mapping[str, Any]], None]) -> None:
        self._link = link
        self._every_s = every_s
        self._heard = heard
        self._phase = ("claimed", "")
        self.heard_at = time.monotonic()
        threading.Thread(target=self._beat, daemon=True).start()

    def now(self, phase: str, run: str = "") -> None:
        """What the next heartbeats say."""
        self._phase = (phase, run)

    def _beat(self) -> None:
        while True:
            phase, run = self._phase
            try:
                message = {"phase": phase, "run": run, "at": time.time()}
                answer = self._link.post("heartbeat", message, patience_s=self._every_s)
            except SilentError:
                continue
            except (LeaseOverError, RefusedError):
                self._heard({"stop": "lease over", "over": True})
                return
            self.heard_at = time.monotonic()
            self._heard(answer)
            time.sleep(self._every_s)
