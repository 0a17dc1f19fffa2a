"""Several hosts that train together: who this one is among them, and the moment when all begin."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any
from urllib.parse import urlsplit

from runners.agent.commands import Stop
from runners.agent.link import Link, SilentError
from runners.agent.work import DeviceWork

_EVERY_S = 0.5
# the end of a lease, where others wait for the last files of all
THE_END = "end"


class Gang:
    """The hosts of a lease; one alone needs nothing of this."""

    def __init__(self, link: Link, stop: Stop, member: int, hosts: int) -> None:
        self.member = member
        self.hosts = hosts
        self._link = link
        self._stop = stop
        self.leader = ""

    def meet(self, run: str, patience_s: float = float("inf")) -> bool:
        """Wait until all hosts are ready for a run; False when the lease is to stop or one never comes."""
        if self.hosts == 1:
            return True
        until = time.monotonic() + patience_s
        message: dict[str, Any] = {"run": run}
        if self.member == 0 and run != THE_END:
            message["port"] = free_port()
        while not self._stop.reason and time.monotonic() < until:
            try:
                answer = self._link.post("ready", message, patience_s=5.0)
            except SilentError:
                continue
            if answer.get("go"):
                self.leader = str(answer["leader"])
                return True
            with self._stop.changed:
                self._stop.changed.wait(_EVERY_S)
        return False

    def variables(self, known: DeviceWork | None) -> dict[str, str]:
        """What torchrun and scripts that do without it need. A TPU's hosts find each other by themselves."""
        devices, kind = (known.count, known.kind) if known else (0, "")
        if kind == "tpu" or (self.hosts == 1 and devices <= 1):
            return {}
        address, _, port = self.leader.rpartition(":") if self.hosts > 1 else ("127.0.0.1", ":", str(free_port()))
        main = {"MASTER_ADDR": address, "MASTER_PORT": port}
        nodes = {"NNODES": str(self.hosts), "NODE_RANK": str(self.member), "NPROC_PER_NODE": str(max(1, devices))}
        return {
            "BENCHBOT_HOSTS": str(self.hosts),
            "BENCHBOT_HOST": str(self.member),
            "BENCHBOT_DEVICES": str(devices),
            **main,
            **nodes,
            # torchrun takes its options from variables of this name
            **{f"PET_{name}": value for name, value in {**main, **nodes}.items()},
        }


def address_towards(server: str) -> str:
    """This host's own address on the way to the bot; empty where that cannot be told."""
    parts = urlsplit(server)
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname or "", parts.port or 443))
        address: str = probe.getsockname()[0]
        return address
    return ""


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
