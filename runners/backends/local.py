"""Machines that are not: the agent as a process of its own on the bot's host.

Each machine is a folder with a label, `machine.json`, and a process that carries the same label in its environment,
so that either finds the other. When the bot is root, a lease's code runs as a user of its own that can reach neither
the bot's folder nor another lease's.

Options: `base_environment` (a virtual environment below every side's own), `trust_all` ("true": run anybody's code
although it is not isolated), `env.NAME` (a variable for the code, such as env.OMP_NUM_THREADS), `simulate` ("tpu": JAX
and PyTorch/XLA see this host's CPU as `devices` devices, 8 where it is not set).
"""

import asyncio
import fcntl
import hashlib
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from runners.agent import processes, trees, users
from runners.backends.base import Backend, BackendError, BackendSettings, Finding
from runners.bundle import build_agent
from runners.spec import MachineOrder, Offer, Sighting

_MARK = "BENCHBOT_MACHINE"
_UIDS = range(61200, 62000)
_LAST_WORDS_BYTES = 4000
_ROOM_GB = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Label:
    """What is known of a machine; `pid` 0 means that it has not been started yet."""

    name: str
    deployment: str
    lease_id: str
    deadline_at: float
    uid: int | None
    pid: int = 0
    started: int = 0


class LocalBackend(Backend):
    """Processes on this host, free of charge."""

    name = "local"
    billed = False

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings)
        self._root = os.geteuid() == 0
        # where the machines are; not below `settings.folder` when a lease's user could not get there
        self.folder = place_of(settings.folder, settings.deployment) if self._root else settings.folder

    def isolates(self) -> str:
        """Root gives each lease a user of its own; anybody else cannot."""
        if self._root or self.settings.options.get("trust_all", "").lower() in ("true", "1", "yes"):
            return ""
        return (
            "The local backend can keep a stranger's code from this user's files only when the bot runs as root; "
            "it is not run here. Start the bot as root, use another backend, or set trust_all = true for [local]."
        )

    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        """This host."""
        _simulation(options)
        return (Offer(backend=self.name, price_usd_per_hour=0.0),)

    async def create(self, order: MachineOrder) -> None:
        """Start an agent for the order, unless it is there already."""
        if not order.trusted and self.isolates():
            raise BackendError("config", self.isolates())
        await asyncio.to_thread(self._create, order)

    async def observe(self, name: str, zone: str) -> Sighting:
        """Running, stopped, or starting when only the label is there yet."""
        return await asyncio.to_thread(self._observe, name)

    async def delete(self, name: str, zone: str) -> None:
        """Kill the agent and all that it started, and remove the machine's folder."""
        await asyncio.to_thread(self._delete, name)

    async def list_owned(self) -> tuple[Sighting, ...]:
        """Machines by their folders, and by the processes whose folder is gone."""
        return await asyncio.to_thread(self._list)

    async def diagnose(self, name: str, zone: str) -> str:
        """The end of what the agent printed."""
        return await asyncio.to_thread(_tail, self.folder / name / "agent.log")

    async def check(self, hardware: Mapping[str, Mapping[str, str]]) -> tuple[Finding, ...]:
        """Also whose user the code is, git, free disk, and the environment that runs are layered on."""
        found = [*await super().check(hardware), self._whose_code(), _git(), _disk(self.folder)]
        base = self.settings.options.get("base_environment", "")
        return (*found, *([_base_environment(Path(base), self._root)] if base else []))

    def _whose_code(self) -> Finding:
        about, me = "isolation", pwd.getpwuid(os.geteuid()).pw_name if os.geteuid() else "root"
        if self._root:
            return Finding(about=about, level="ok", sentence="Each lease's code runs as a user of its own.")
        if not self.isolates():
            told = f"Strangers' code runs as {me}, who can read the bot's database and key."
            advice = "Run the bot as root, or take trust_all out of [local]."
            return Finding(about=about, level="warning", sentence=told, advice=advice)
        told = f"Code of people with write right runs as {me}, who also runs the bot; strangers' code is refused."
        return Finding(about=about, level="ok", sentence=told)

    def clear(self) -> None:
        """Remove the environments, inputs and interpreters that are kept from lease to lease."""
        if self.folder.exists():
            trees.remove(self.folder)

    def _create(self, order: MachineOrder) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._root:
            _refuse_others(self.folder)
            self.folder.chmod(0o711)
        with self._lock():
            label = self._label(order.name) or self._new_label(order)
            running = _marked(self.settings.deployment).get(order.name)
            if running is None and not label.pid:
                running = self._start(order, label)
            if running is not None:
                self._write(running)

    def _new_label(self, order: MachineOrder) -> _Label:
        folder = self.folder / order.name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711 if self._root else 0o700)
        label = _Label(
            name=order.name,
            deployment=order.deployment,
            lease_id=order.lease_id,
            deadline_at=order.deadline_at,
            uid=None,
        )
        if not self._root:
            self._write(label)
            return label
        busy = {other.uid for other in _marked(None).values() if other.uid is not None}
        with users.taken_for(folder / "machine.json", _UIDS, busy) as uid:
            if uid is None:
                raise BackendError("no_capacity", "All users for leases on this host are taken.")
            label = replace(label, uid=uid)
            self._write(label)
        return label

    def _start(self, order: MachineOrder, label: _Label) -> _Label:
        folder = self.folder / order.name
        options = {**self.settings.options, **order.options}
        code = {key.removeprefix("env."): value for key, value in options.items() if key.startswith("env.")}
        _write_private(folder / "token", order.token)
        _write_private(
            folder / "environment.json", json.dumps(code | _simulation(order.options, code.get("XLA_FLAGS", "")))
        )
        words = [str(self._agent()), "--server", order.server_url, "--lease", order.lease_id]
        words += ["--token-file", str(folder / "token"), "--environment-file", str(folder / "environment.json")]
        words += ["--folder", str(folder / "lease"), "--cache", str(self.folder / "_cache")]
        words += ["--deadline", str(order.deadline_at)]
        words += ["--member", str(order.member)]
        words += ["--trusted"] if order.trusted else []
        words += ["--uid", str(label.uid)] if label.uid is not None else []
        words += ["--base-environment", options["base_environment"]] if options.get("base_environment") else []
        pid = _detach([sys.executable, "-I", "-S", *words], folder / "agent.log", {_MARK: json.dumps(asdict(label))})
        process = processes.read_process(pid)
        return replace(label, pid=pid, started=process.started if process else 0)

    def _agent(self) -> Path:
        bundle = build_agent()
        path = self.folder / f"_agent-{hashlib.sha256(bundle).hexdigest()[:16]}.pyz"
        if not path.exists():
            path.write_bytes(bundle)
        return path

    def _observe(self, name: str) -> Sighting:
        return self._sighting(name, self._label(name), _marked(self.settings.deployment).get(name))

    def _sighting(self, name: str, written: _Label | None, running: _Label | None) -> Sighting:
        label = running or written
        if label is None:
            return Sighting(name=name, state="absent")
        alive = running is not None or (label.pid > 0 and processes.is_alive(label.pid, label.started))
        return Sighting(
            name=name,
            state="running" if alive else "stopped" if label.pid else "starting",
            lease_id=label.lease_id,
            deadline_at=label.deadline_at,
            evidence="" if alive else _tail(self.folder / name / "agent.log"),
        )

    def _list(self) -> tuple[Sighting, ...]:
        running = _marked(self.settings.deployment)
        written = {label.name: label for label in self._labels() if label.deployment == self.settings.deployment}
        return tuple(
            self._sighting(name, written.get(name), running.get(name))
            for name in sorted(running.keys() | written.keys())
        )

    def _delete(self, name: str) -> None:
        folder = self.folder / name
        running = _marked(self.settings.deployment).get(name)
        label = running or self._label(name)
        if label is not None:
            if label.pid and processes.is_alive(label.pid, label.started):
                # stopped first, so that it starts nothing new while what it started is ended
                processes.send(label.pid, signal.SIGSTOP)
                processes.kill_below(label.pid)
                processes.send(label.pid, signal.SIGKILL)
            if label.uid is not None and (running or users.is_of(label.uid, folder / "machine.json")):
                processes.kill_all_of(label.uid)
                trees.remove_strays(label.uid)
        for pid in processes.working_in(folder / "lease"):
            processes.send(pid, signal.SIGKILL)
        if folder.exists():
            trees.remove(folder)

    def _label(self, name: str) -> _Label | None:
        try:
            return _Label(**json.loads((self.folder / name / "machine.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _labels(self) -> list[_Label]:
        found = (self._label(path.parent.name) for path in self.folder.glob("*/machine.json"))
        return [label for label in found if label is not None]

    def _write(self, label: _Label) -> None:
        path = self.folder / label.name / "machine.json"
        fresh = path.with_suffix(".new")
        _write_private(fresh, json.dumps(asdict(label)))
        fresh.rename(path)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.folder / "_lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _simulation(options: Mapping[str, str], flags: str = "") -> dict[str, str]:
    """Variables that make the CPU look like what one hardware simulates, if it does. Raises BackendError."""
    if "simulate" not in options:
        return {}
    devices = options.get("devices", "8")
    if options["simulate"] != "tpu" or not devices.isdigit() or int(devices) < 1:
        raise BackendError("config", "`simulate` can be tpu alone, and `devices` is a whole number from 1.")
    flags = f"{flags} --xla_force_host_platform_device_count={devices}".strip()
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "PJRT_DEVICE": "CPU", "CPU_NUM_DEVICES": devices}


def _marked(deployment: str | None) -> dict[str, _Label]:
    """Living agents by the name of their machine; of every deployment when `deployment` is None."""
    found = {}
    for process in processes.all_processes():
        text = processes.environment_of(process.pid).get(_MARK)
        if text is None:
            continue
        try:
            label = replace(_Label(**json.loads(text)), pid=process.pid, started=process.started)
        except (ValueError, TypeError):
            continue
        if deployment in (None, label.deployment):
            found[label.name] = label
    return found


def _detach(words: list[str], log: Path, marks: Mapping[str, str]) -> int:
    """Start a program that is no child of ours, in a session of its own, with nothing of our environment."""
    script = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
    try:
        started = subprocess.run(
            ["/bin/sh", "-c", script, "sh", str(log), *words],
            env={"PATH": os.defpath, "LANG": "C.UTF-8", **marks},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise BackendError("config", "The agent could not be started on this host.") from error
    return int(started.stdout)


def place_of(folder: Path, deployment: str) -> Path:
    """`folder` when other users can get to it, else one of this deployment's below /var/tmp."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if all(path.stat().st_mode & stat.S_IXOTH for path in existing.resolve().parents) and (
        existing == folder or existing.stat().st_mode & stat.S_IXOTH
    ):
        return folder
    digest = hashlib.sha256(f"{deployment}\0{folder.resolve()}".encode()).hexdigest()[:16]
    return Path("/var/tmp") / f"benchbot-{digest}"


def _refuse_others(folder: Path) -> None:
    """Somebody else may have made a folder of this name first, to get at what will be in it."""
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != 0 or info.st_mode & 0o022:
        raise BackendError("config", f"{folder} belongs to somebody else; remove it, or choose another data folder.")


def _git() -> Finding:
    if path := shutil.which("git"):
        return Finding(about="git", level="ok", sentence=f"It is {path}.")
    return Finding(about="git", level="fault", sentence="It is not installed.", advice="apt-get install git")


def _disk(folder: Path) -> Finding:
    # what is behind a closed door counts as not there
    existing = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    free_gb = shutil.disk_usage(existing).free / 1e9
    told = f"{free_gb:.0f} GB are free for machines in {folder}."
    if free_gb >= _ROOM_GB:
        return Finding(about="disk", level="ok", sentence=told)
    advice = f"Two environments and their checkpoints need about {_ROOM_GB} GB: set `data_folder`, or make room."
    return Finding(about="disk", level="warning", sentence=told, advice=advice)


def _base_environment(folder: Path, root: bool) -> Finding:
    about, python = "base environment", folder / "bin" / "python"
    if not os.access(python, os.X_OK):
        advice = f"python3 -m venv {folder}, or set `base_environment` in [local] to another one."
        return Finding(about=about, level="fault", sentence=f"There is no {python}.", advice=advice)
    closed = [path for path in (folder, *folder.resolve().parents) if root and not path.stat().st_mode & stat.S_IXOTH]
    if closed:
        told = f"The users of the leases cannot get into {closed[-1]}."
        advice = f"chmod o+x {closed[-1]}, or move the environment."
        return Finding(about=about, level="fault", sentence=told, advice=advice)
    return Finding(about=about, level="ok", sentence=f"It is {folder}.")


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LAST_WORDS_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
