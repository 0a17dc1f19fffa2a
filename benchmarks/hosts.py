"""What runs on the instances of a Compute Engine on loopback: the real agent, as their start-up script starts it."""

import asyncio
import contextlib
import os
import re
import shlex
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import ClientSession

from runners.agent import processes
from runners.protocol import PREFIX
from runners.spec import MachineOrder
from tests.harness.gce import ComputeEngine

# how late a host may notice that its instance runs or is gone
LOOK_S = 0.02


class Hosts:
    """One agent for each instance that runs. `billed_s` are seconds from order to absence, by lease."""

    def __init__(self, engine: ComputeEngine, folder: Path, server_url: str) -> None:
        self.billed_s: dict[str, float] = {}
        self._engine, self._folder, self._server_url = engine, folder, server_url
        self._agents: dict[str, tuple[MachineOrder, float, Process]] = {}

    async def run(self) -> None:
        """Start what runs and end what is gone, until cancelled."""
        async with ClientSession() as session:
            while True:
                for name, order in self._engine.orders(self._server_url).items():
                    if name not in self._agents:
                        await self._start(session, order)
                for name, (order, _, agent) in list(self._agents.items()):
                    if (order.offer.zone, name) not in self._engine.instances:
                        await self._end(name)
                    elif agent.returncode is not None:
                        self._engine.power_off(name)
                await asyncio.sleep(LOOK_S)

    async def close(self) -> None:
        """End every agent that is left."""
        for name in list(self._agents):
            await self._end(name)

    async def _start(self, session: ClientSession, order: MachineOrder) -> None:
        """The script's own line, in a folder as empty as a fresh disk.

        Without a user of its own for the code, and with this environment below those of the sides: what a cloud's
        image has anyway would have to be copied here first.
        """
        instance = self._engine.instances[order.offer.zone, order.name]
        script = {item["key"]: item["value"] for item in instance.body["metadata"]["items"]}["startup-script"]
        line = re.search(r"^python3 (agent\.pyz .*?)>", script, re.MULTILINE | re.DOTALL)
        assert line
        words = shlex.split(re.sub(r"\\\n|--uid \d+", " ", line[1]))
        # the script finds it out before that line
        words = [str(order.member) if word == "$member" else word for word in words]
        folder = self._folder / order.name
        await asyncio.to_thread(folder.mkdir, parents=True)
        async with session.get(f"{self._server_url}{PREFIX}/agent.pyz") as answer:
            bundle = await answer.read()
        await asyncio.to_thread((folder / "agent.pyz").write_bytes, bundle)
        await asyncio.to_thread((folder / "token").write_text, order.token)
        agent = await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            "--base-environment",
            sys.prefix,
            cwd=folder,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
        self._agents[order.name] = (order, instance.created_at, agent)

    async def _end(self, name: str) -> None:
        order, created_at, agent = self._agents.pop(name)
        self.billed_s[order.lease_id] = time.time() - created_at
        if agent.returncode is None:
            await asyncio.to_thread(processes.kill_below, agent.pid)
            with contextlib.suppress(ProcessLookupError):
                agent.kill()
        await agent.wait()


@asynccontextmanager
async def hosts_of(engine: ComputeEngine, folder: Path, server_url: str) -> AsyncIterator[Hosts]:
    """Hosts for as long as they are needed."""
    hosts = Hosts(engine, folder, server_url)
    task = asyncio.create_task(hosts.run())
    try:
        yield hosts
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await hosts.close()
