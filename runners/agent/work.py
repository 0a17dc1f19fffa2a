"""The work of a lease as it comes in the answer to a claim: the same fields as `runners.spec`, which needs a newer
Python than machines have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """A commit to check out: git URL and 40 hex digits."""

    url: str
    commit: str


@dataclass(frozen=True)
class SideWork:
    """The repository of one side, and the tree with the scripts if there is a second one."""

    source: Source
    scripts: Source | None


@dataclass(frozen=True)
class InputWork:
    """A file to fetch and its sha256 in hex."""

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class KeptFile:
    """A file that this run had shipped from an earlier machine; an empty hash is not checked."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class RunWork:
    """One training command, with all that fills its placeholders but the paths of inputs."""

    id: str
    side: str
    command: str
    words: Mapping[str, str]
    raw: Mapping[str, str]
    env: Mapping[str, str]
    timeout_s: float
    kept: tuple[KeptFile, ...] = ()
    asks: bool = False


@dataclass(frozen=True)
class DeviceWork:
    """The devices of this host: cuda, rocm, xpu or tpu."""

    kind: str
    count: int


@dataclass(frozen=True)
class Work:
    """All that this lease does, in order."""

    sides: Mapping[str, SideWork]
    runs: tuple[RunWork, ...]
    setup: str
    setup_inputs: tuple[str, ...]
    python: str | None
    inputs: tuple[InputWork, ...]
    setup_timeout_s: float
    interruptible: bool = False
    devices: DeviceWork | None = None
    hosts: int = 1


def read_work(message: Mapping[str, Any]) -> Work:
    """The work in a message. Raises KeyError or TypeError when it is not one."""
    sides = {
        name: SideWork(Source(**side["source"]), Source(**side["scripts"]) if side.get("scripts") else None)
        for name, side in message["sides"].items()
    }
    runs = tuple(
        RunWork(
            id=run["id"],
            side=run["side"],
            command=run["command"],
            words=run["words"],
            raw=run["raw"],
            env=run["env"],
            timeout_s=run["timeout_s"],
            kept=tuple(KeptFile(**item) for item in run.get("kept", ())),
            asks=bool(run.get("asks")),
        )
        for run in message["runs"]
    )
    return Work(
        sides=sides,
        runs=runs,
        setup=message.get("setup", ""),
        setup_inputs=tuple(message.get("setup_inputs", ())),
        python=message.get("python"),
        inputs=tuple(InputWork(**item) for item in message.get("inputs", ())),
        setup_timeout_s=message.get("setup_timeout_s", 1800),
        interruptible=bool(message.get("interruptible")),
        devices=DeviceWork(**message["devices"]) if message.get("devices") else None,
        hosts=message.get("hosts", 1),
    )
