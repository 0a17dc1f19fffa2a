"""The loop of a host of the operator's own: enrols once, tells the bot what it has, does what the bot wants of it.

`python3 agent.pyz --enrol https://bench.example.org --code CODE --labels xpu` the first time; later without the code.
The bot's answer names the one order that this host shall hold: it is begun when it is not there, and everything else
is ended and removed. While the bot is away what runs goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import signal
import stat
import threading
import time
import traceback
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runners import protocol
from runners.agent import devices
from runners.agent.link import LeaseOverError, Link, RefusedError, SilentError
from runners.agent.tenant import Tenant

EXIT_REFUSED = 3
_ENROL_PATIENCE_S = 60.0
_PROBE_EVERY_S = 60.0
_FIRST_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 60.0
_NAME = re.compile(r"[a-z0-9-]{1,63}\Z")
_LABEL = re.compile(r"[A-Za-z0-9._-]{1,63}\Z")


def is_meant(words: list[str]) -> bool:
    """Whether a command line is for this loop, and not for the agent of one lease."""
    return any(word.partition("=")[0] == "--enrol" for word in words)


def main(words: list[str]) -> int:
    """The command line of `python3 agent.pyz --enrol ...`."""
    parser = argparse.ArgumentParser(prog="agent", description="Make this computer a host of a bot's pool.")
    add_arguments(parser)
    return serve(parser.parse_args(words))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `serve` is told."""
    usual = "/var/lib/benchbot-host" if os.geteuid() == 0 else "~/.benchbot-host"
    parser.add_argument("--enrol", required=True, metavar="URL", help="address of the bot")
    parser.add_argument("--code", default="", help="what `benchbot pool add` has printed; only the first time")
    parser.add_argument("--labels", help="what the operator's hardware asks for, such as xpu,max1100")
    parser.add_argument("--folder", type=Path, default=Path(usual), help=f"where it keeps everything; {usual}")


def serve(chosen: argparse.Namespace) -> int:
    """Be a host until asked to stop. 0 after that; 2 for a wrong call, 3 when the bot does not want this host."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        link = Link(chosen.enrol, stop)
        folder = _prepare(chosen.folder)
        with _alone(folder):
            kept = _enrol(chosen, folder, link)
            _Loop(folder, link, kept, stop).run()
    except (_SetupError, ValueError) as error:
        print(f"agent: {error}", flush=True)
        return 2
    except (LeaseOverError, RefusedError, SilentError) as error:
        print(f"agent: this host could not be enrolled: {error}", flush=True)
        return EXIT_REFUSED
    return 0


class _SetupError(Exception):
    """This host cannot be one as it was started; the text says what to do."""


def _prepare(folder: Path) -> Path:
    """The folder, ours alone, and in the reach of the users that leases run as."""
    folder = folder.expanduser().absolute()
    root = os.geteuid() == 0
    for path, mode in ((folder, 0o711 if root else 0o700), (folder / "orders", 0o711)):
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
    if root and not all(path.stat().st_mode & stat.S_IXOTH for path in folder.resolve().parents):
        raise _SetupError(f"other users cannot get to {folder}: choose another --folder, such as one below /var/lib")
    return folder


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One loop at a time."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _SetupError(f"another loop works in {folder} already") from None
        yield


def _enrol(chosen: argparse.Namespace, folder: Path, link: Link) -> dict[str, Any]:
    """What is kept of this host's place in the pool; a code that has not been used yet is.

    The credential is made here and written down before it is sent, so that an answer that is lost does no harm.
    """
    place, fresh = folder / "credential.json", folder / "credential.new"
    kept, digest = _read(place), hashlib.sha256(chosen.code.encode()).hexdigest()
    if chosen.code and kept.get("code") != digest:
        kept = _read(fresh)
        if kept.get("code") != digest:
            kept = {"code": digest, "credential": secrets.token_hex(32), "labels": []}
            _write(fresh, kept)
        link.credential = str(kept["credential"])
        answer = link.post("hosts/enrol", {"code": chosen.code}, _ENROL_PATIENCE_S)
        print(f"enrolled as {answer.get('name')}", flush=True)
        fresh.rename(place)
    if not kept:
        raise _SetupError("this host is not enrolled yet: --code is what `benchbot pool add NAME` prints")
    if chosen.labels is not None:
        kept["labels"] = [word.strip() for word in chosen.labels.split(",") if word.strip()]
        if not all(_LABEL.match(label) for label in kept["labels"]):
            raise _SetupError("a label is made of letters, digits, `.`, `_` and `-`")
        _write(fresh, kept)
        fresh.rename(place)
    link.credential = str(kept["credential"])
    return kept


class _Loop:
    """Rounds: look at what is here, tell the bot, do what it answers."""

    def __init__(self, folder: Path, link: Link, kept: Mapping[str, Any], stop: threading.Event) -> None:
        self._folder = folder
        self._link = link
        self._kept = kept
        self._stop = stop
        self._tenants = {path.name: Tenant(path) for path in (folder / "orders").iterdir()}
        self._devices: list[devices.Device] = []
        self._probed_at = -_PROBE_EVERY_S
        self._trouble = ""

    def run(self) -> None:
        """Until we are told to stop; what runs then goes on, and is found again."""
        pause_s = _FIRST_PAUSE_S
        while not self._stop.is_set():
            try:
                poll_s = self._round()
            except (SilentError, LeaseOverError, RefusedError) as error:
                self._say(f"the bot is away or does not know this host: {error}")
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            except Exception:
                # a host that ends itself for a bug would have to be visited
                traceback.print_exc()
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            else:
                self._say("")
                pause_s = poll_s
            self._stop.wait(pause_s)

    def _round(self) -> float:
        """Returns after how many seconds the bot wants to hear of us again."""
        running = [tenant.look(time.time()) for tenant in self._tenants.values()]
        # nothing else may take the devices' time while something is measured on them
        if not any(running) and time.monotonic() >= self._probed_at + _PROBE_EVERY_S:
            self._probe()
        message = {
            "labels": self._kept["labels"],
            "devices": [asdict(device) for device in self._devices],
            "isolates": os.geteuid() == 0,
            "holds": [tenant.told() for tenant in self._tenants.values()],
        }
        answer = self._link.post("hosts/poll", message, patience_s=0.0)
        wanted, start = str(answer["order"]), answer["start"]
        for name in [name for name in self._tenants if name != wanted]:
            if self._tenants[name].remove():
                del self._tenants[name]
                print(f"{name}: removed", flush=True)
            # what the lease has done to the devices is told in the same message as its end
            self._probed_at = -_PROBE_EVERY_S
        if start is not None and not self._tenants and _NAME.match(wanted):
            self._begin(wanted, start)
        return float(answer["poll_s"])

    def _begin(self, name: str, order: Mapping[str, Any]) -> None:
        """Begin an order, or remember why this host cannot."""
        place = self._folder / "orders" / name
        self._probe()
        ill = [device.trouble for device in self._devices if device.trouble]
        if ill or len(self._devices) < order["devices"]:
            seen = f"{len(self._devices)} of {order['devices']} devices are there"
            self._refuse(place, "device_unhealthy", f"{ill[0] if ill else seen}.")
            return
        if not order["trusted"] and os.geteuid() != 0:
            self._refuse(place, "config", "Code of strangers needs a host whose loop runs as root.")
            return
        bundle = self._fetch(order["server"])
        try:
            self._tenants[name] = Tenant.begin(place, order, bundle, self._folder / "cache")
        except OSError as error:
            self._refuse(place, "config", f"The host could not start the agent: {error}.")
        else:
            print(f"{name}: begun", flush=True)

    def _refuse(self, place: Path, code: str, sentence: str) -> None:
        tenant = Tenant(place)
        tenant.refuse(code, sentence)
        self._tenants[place.name] = tenant
        print(f"{place.name}: refused: {sentence}", flush=True)

    def _fetch(self, server: str) -> bytes:
        """The agent that fits the bot. Raises SilentError; the bot sends the order again."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{server}{protocol.PREFIX}/agent.pyz", timeout=30) as answer:
                bundle: bytes = answer.read()
        except OSError as error:
            raise SilentError(str(error)) from None
        return bundle

    def _probe(self) -> None:
        self._devices = devices.probe()
        self._probed_at = time.monotonic()

    def _say(self, trouble: str) -> None:
        """Once, not every few seconds."""
        if trouble and trouble != self._trouble:
            print(trouble, flush=True)
        self._trouble = trouble


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, kept: Mapping[str, Any]) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(kept, file)
