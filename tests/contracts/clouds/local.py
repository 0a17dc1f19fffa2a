"""Processes of this host: agents that look for a bot which is not there."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from runners.agent import processes
from runners.backends.base import BackendSettings
from runners.backends.local import LocalBackend
from tests.contracts.clouds import NAME, Cloud


class Local(Cloud):
    """This host."""

    name = "local"
    options: ClassVar = {}
    zone = ""
    more: ClassVar = {"server_url": "http://127.0.0.1:9", "trusted": True}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.clock = time.time

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            backend = self.backend()
            await backend.delete(NAME, "")
            backend.clear()

    def backend(self) -> LocalBackend:
        # other processes of these tests have machines of the same name
        deployment = f"t{os.getpid()}"
        options = {"trust_all": "true"}
        return LocalBackend(
            BackendSettings(deployment=deployment, folder=self.folder / "machines", clock=time.time, options=options)
        )

    def made(self) -> int:
        return len(self._agents())

    async def is_empty(self) -> bool:
        return not self._agents() and not (self.backend().folder / NAME).exists()

    def _agents(self) -> list[int]:
        """Processes that work for the machine, by its folder in their words."""
        mine = str(self.backend().folder / NAME)
        return [process.pid for process in processes.all_processes() if mine in _words_of(process.pid)]


def _words_of(pid: int) -> str:
    """The words that a process was started with; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
