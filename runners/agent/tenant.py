"""One order on a host of a pool: the ordinary agent as a process of its own, and a folder that says so.

The folder outlives this program: a host that was restarted finds in it what it had been given. It goes when the bot
does not want the order any more, with every process and file of the lease.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runners.agent import processes, trees, users

_UIDS = range(61200, 62000)
_MARK = "tenant.json"
_LAST_WORDS_BYTES = 4000
# the agent ends by itself at its deadline and a minute; what does not is made to
_LATE_S = 180.0


class Tenant:
    """An order below `folder`/NAME."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self._child: subprocess.Popen[bytes] | None = None
        self._kept: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            self._kept = json.loads((folder / _MARK).read_text())
        if "pid" not in self._kept and "code" not in self._kept:
            self._kept.update(code="agent_lost", said="The host was restarted before the agent was.")

    @classmethod
    def begin(cls, folder: Path, order: Mapping[str, Any], bundle: bytes, cache: Path) -> Tenant:
        """Start the agent for an order. Raises OSError when this host cannot."""
        root = os.geteuid() == 0
        folder.mkdir(parents=True)
        folder.chmod(0o711 if root else 0o700)
        kept: dict[str, Any] = {"deadline_at": order["deadline_at"], "uid": None}
        if root:
            with users.taken_for(folder / _MARK, _UIDS, set()) as uid:
                if uid is None:
                    raise OSError("all users for leases on this host are taken")
                kept["uid"] = uid
                _write(folder / _MARK, json.dumps(kept))
        for name, text in (("token", order["token"]), ("environment.json", json.dumps(order["environment"]))):
            _write(folder / name, text)
        (folder / "agent.pyz").write_bytes(bundle)
        made = cls(folder)
        made._start(kept, order, cache)
        return made

    def _start(self, kept: dict[str, Any], order: Mapping[str, Any], cache: Path) -> None:
        folder = self.folder
        words = [str(folder / "agent.pyz"), "--server", order["server"], "--lease", order["lease"]]
        words += ["--token-file", str(folder / "token"), "--environment-file", str(folder / "environment.json")]
        words += ["--folder", str(folder / "lease"), "--cache", str(cache), "--deadline", str(order["deadline_at"])]
        words += ["--member", str(order.get("member", 0))]
        words += ["--trusted"] if order["trusted"] else []
        words += ["--uid", str(kept["uid"])] if kept["uid"] is not None else []
        words += ["--base-environment", order["base_environment"]] if order["base_environment"] else []
        with (folder / "agent.log").open("ab") as log:
            # a session of its own: what ends this program must not end the lease
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", *words],
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "LANG": "C.UTF-8",
                    # by this it is found even when we end before its id is written down
                    "BENCHBOT_TENANT": str(folder / "lease"),
                },
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        process = processes.read_process(self._child.pid)
        self._keep(**kept, pid=self._child.pid, started=process.started if process else 0, boot=_boot())

    def refuse(self, code: str, said: str) -> None:
        """Remember that this host cannot do it, until the bot takes it back."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._keep(code=code, said=said)

    @property
    def alive(self) -> bool:
        """Whether its agent runs."""
        if self._child is not None:
            return self._child.poll() is None
        pid = self._kept.get("pid", 0)
        return bool(pid) and self._kept["boot"] == _boot() and processes.is_alive(pid, self._kept["started"])

    def look(self, now: float) -> bool:
        """Note what has become of it; whether its agent runs."""
        if self.alive:
            if now < self._kept["deadline_at"] + _LATE_S:
                return True
            self._end()
            self._keep(**self._kept, code="lease_timeout", said="The agent did not end at its deadline.")
        elif "code" not in self._kept and (self.folder / "lease").exists():
            # an agent that ends by itself leaves no folder behind
            self._end()
            self._keep(**self._kept, code="agent_lost", said="The host was restarted, or the agent was killed.")
        return False

    def told(self) -> dict[str, Any]:
        """What the bot hears of it."""
        words = f"{self._kept.get('said', '')}\n{_tail(self.folder / 'agent.log')}".strip()
        state = "running" if self.alive else "stopped"
        return {"order": self.name, "state": state, "code": self._kept.get("code", ""), "said": words}

    def remove(self) -> bool:
        """End and remove all of it; False when something is still there, and this is to be tried again."""
        if not self.folder.exists():
            return True
        self._end()
        for path in self.folder.iterdir():
            # the mark goes last: until then the user is not given to another lease
            if path.name != _MARK:
                _remove(path)
        if processes.working_in(self.folder / "lease") or {path.name for path in self.folder.iterdir()} - {_MARK}:
            return False
        trees.remove(self.folder)
        return not self.folder.exists()

    def _end(self) -> None:
        """Kill the agent, all that it started, and all of its user; remove the lease's files."""
        if self.alive:
            pid = self._kept["pid"]
            # stopped first, so that it starts nothing new while what it started is ended
            processes.send(pid, signal.SIGSTOP)
            processes.kill_below(pid)
            processes.send(pid, signal.SIGKILL)
        if self._child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout=10.0)
        uid = self._kept.get("uid")
        if uid is not None and users.is_of(uid, self.folder / _MARK):
            processes.kill_all_of(uid)
            trees.remove_strays(uid)
        for pid in processes.working_in(self.folder / "lease"):
            processes.send(pid, signal.SIGKILL)
        if (self.folder / "lease").exists():
            trees.remove(self.folder / "lease")

    def _keep(self, **kept: Any) -> None:
        self._kept = kept
        fresh = self.folder / "tenant.new"
        _write(fresh, json.dumps(kept))
        fresh.rename(self.folder / _MARK)


def _boot() -> str:
    """What tells one start of this computer from the next: process ids begin anew."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        trees.remove(path)
    else:
        path.unlink()


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LAST_WORDS_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
