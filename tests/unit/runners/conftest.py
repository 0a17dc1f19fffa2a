"""A scene for the agent: a repository with two commits, a bot in memory, and the real agent as a process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.agent import processes
from runners.bundle import build_agent
from tests.harness.agent_server import TOKEN, AgentServer

PYPROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "digits"
version = "1.0"
[tool.setuptools.packages.find]
where = ["src"]
"""


class Repository:
    """A git repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q")

    def git(self, *words: str) -> str:
        who = {f"GIT_{role}_{part}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **who}
        return subprocess.run(
            ["git", *words], cwd=self.folder, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, files: Mapping[str, str]) -> str:
        """Write files, commit them, and return the commit's id."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")
        return self.git("rev-parse", "HEAD")


class Scene:
    """What a test of the agent needs; `work` is sent when the agent claims."""

    def __init__(self, folder: Path, bundle: Path) -> None:
        self.folder = folder
        self.bundle = bundle
        self.repository = Repository(folder / "repository")
        self.base = self.repository.commit({"pyproject.toml": PYPROJECT, "src/digits/__init__.py": "SIDE = 'base'\n"})
        self.head = self.repository.commit({"src/digits/__init__.py": "SIDE = 'head'\n"})
        self.server = AgentServer({}, deadline_at=time.time() + 600)
        self.path = "/usr/bin:/bin"
        self.agents: list[asyncio.subprocess.Process] = []

    def plan(self, *runs: Mapping[str, Any], **more: Any) -> None:
        """Set the work of the next lease: head and base of the repository, with these runs."""
        self.server.nonces.clear()
        sides = {"head": self._side(self.head), "base": self._side(self.base)}
        self.server.work = {"sides": sides, "runs": list(runs), **more}

    def _side(self, commit: str) -> dict[str, Any]:
        return {"source": {"url": str(self.repository.folder), "commit": commit}, "scripts": None}

    def run(self, name: str, command: str, side: str = "head", **more: Any) -> dict[str, Any]:
        """One run of the plan."""
        run = {"id": name, "side": side, "seed": 1, "command": command, "words": {}, "raw": {}, "env": {}}
        return {**run, "timeout_s": 60, **more}

    async def agent(
        self, *more: str, folder: str = "lease", through: tuple[str, ...] = ()
    ) -> asyncio.subprocess.Process:
        """Start the agent, `through` another program where there is one."""
        token = self.folder / "token"
        token.write_text(TOKEN)
        words = ["--server", self.server.url, "--lease", "L1", f"--{self.server.proof}-file", str(token)]
        words += ["--folder", str(self.folder / folder), "--cache", str(self.folder / "cache")]
        words += ["--deadline", str(self.server.deadline_at), "--kill-after-s", "0.3", "--checkout-patience-s", "0.1"]
        process = await asyncio.create_subprocess_exec(
            *through,
            sys.executable,
            str(self.bundle),
            *words,
            *more,
            env={"PATH": self.path},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self.agents.append(process)
        return process

    async def finish(self, *more: str) -> str:
        """Run an agent to its end; returns what it printed."""
        process = await self.agent(*more)
        out, _ = await asyncio.wait_for(process.communicate(), 90)
        return out.decode()

    def left_running(self) -> list[int]:
        """Processes that still stand in, or know of, the lease's folder."""
        return processes.working_in(self.folder / "lease")


@pytest.fixture(scope="session")
def agent_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "agent.pyz"
    path.write_bytes(build_agent())
    return path


@pytest.fixture
async def scene(tmp_path: Path, agent_bundle: Path) -> AsyncIterator[Scene]:
    made = Scene(tmp_path, agent_bundle)
    await made.server.start()
    yield made
    for agent in made.agents:
        if agent.returncode is None:
            processes.kill_below(agent.pid)
            agent.kill()
            await agent.communicate()
    for pid in made.left_running():
        os.kill(pid, signal.SIGKILL)
    await made.server.stop()


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def environment_file(folder: Path, **variables: str) -> Path:
    """A file for the agent's --environment-file."""
    path = folder / "environment.json"
    path.write_text(json.dumps(variables))
    return path
