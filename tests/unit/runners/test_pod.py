"""What runs in a pod before the agent: here without a cluster."""

import http.server
import importlib
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.pods import KEEPER
from tests.harness.agent_server import TOKEN
from tests.unit.runners.conftest import Scene


class _Bot(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/agent/v1/agent.pyz" else 404)
        self.end_headers()
        self.wfile.write(b"the agent")

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


class Started(Exception):
    """The process would be the agent now."""


@pytest.fixture
def bot() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Bot) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, in a folder of its own, with nobody at the metadata server's address."""
    script = importlib.import_module("templates.machines.pod")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(script, "TERMINATION_LOG", str(tmp_path / "termination-log"))
    monkeypatch.setattr(script, "TRIES", 2)
    monkeypatch.setattr(script.time, "sleep", lambda seconds: None)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setattr(script, "METADATA", nobody.getsockname())
        yield script


def start(pod: Any, monkeypatch: pytest.MonkeyPatch, bot: str) -> list[str]:
    """Run it; the words that the agent would be started with."""
    words: list[str] = []

    def become(program: str, argv: list[str]) -> None:
        words.extend(argv)
        raise Started

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setattr(sys, "argv", ["-c", f"{bot}/agent/v1/agent.pyz", "--server", bot])
    with pytest.raises(Started):
        pod.main()
    return words


def test_it_becomes_the_agent(pod: Any, monkeypatch: pytest.MonkeyPatch, bot: str, tmp_path: Path) -> None:
    """With the agent's words, and with what the image says of devices and nothing else."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")
    monkeypatch.setenv("TPU_WORKER_ID", "0")
    monkeypatch.setenv("SECRET", "hunter2")
    words = start(pod, monkeypatch, bot)
    assert words == [sys.executable, "agent.pyz", "--server", bot, "--environment-file", "environment.json"]
    assert Path("agent.pyz").read_bytes() == b"the agent"
    given = json.loads(Path("environment.json").read_text())
    assert given["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"
    assert given["TPU_WORKER_ID"] == "0"
    assert "SECRET" not in given
    if os.getuid() == 0:
        assert tmp_path.stat().st_mode & 0o777 == 0o711


def test_a_metadata_server_in_reach(pod: Any, monkeypatch: pytest.MonkeyPatch, bot: str) -> None:
    """Nothing is run, and the bot reads why."""
    monkeypatch.setattr(pod, "METADATA", ("127.0.0.1", int(bot.rpartition(":")[2])))
    monkeypatch.setattr(sys, "argv", ["-c", f"{bot}/agent/v1/agent.pyz"])
    with pytest.raises(SystemExit) as ended:
        pod.main()
    assert ended.value.code == 78
    assert "metadata server" in Path("termination-log").read_text()
    assert not Path("agent.pyz").exists()


def test_a_bot_that_is_out_of_reach(pod: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that was tried is told."""
    elsewhere = "http://{}:{}/agent/v1/agent.pyz".format(*pod.METADATA)
    monkeypatch.setattr(sys, "argv", ["-c", elsewhere])
    with pytest.raises(SystemExit) as ended:
        pod.main()
    assert ended.value.code == 78
    assert elsewhere in Path("termination-log").read_text()


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that other users can get to."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
async def test_an_agent_with_the_capabilities_of_a_pod(agent_bundle: Path, reachable: Path) -> None:
    """They suffice to run, end and clean up after code as another user, who gets at nothing of the agent's."""
    folder, scene = reachable, Scene(reachable, agent_bundle)
    await scene.server.start()
    try:
        os.close(os.open(folder / "token", os.O_CREAT, 0o400))
        hostile = f"cat {folder}/token /proc/$PPID/environ /proc/$PPID/mem; ls {folder}/lease/state; rm {folder}/token"
        hostile += "; kill -9 $PPID; setsid sleep 100 & grep CapEff /proc/self/status; true"
        scene.plan(scene.run("r1", hostile), scene.run("r2", "echo well", side="base"), setup="pip --version")
        bounds = ",".join(("-all", *(f"+{name.lower()}" for name in KEEPER)))
        through = ("setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={bounds}")
        # no other test has processes of this user
        agent = await scene.agent("--uid", str(70_000 + os.getpid() % 10_000), through=through)
        assert agent.stdout
        assert await agent.stdout.read() == b""
        assert await agent.wait() == 0
        log = scene.server.files["r1", "log.txt"].decode()
        assert TOKEN not in log
        assert log.count("denied") + log.count("not permitted") == 6, log
        assert "CapEff:\t0000000000000000" in log
        assert "1 processes that the command left behind were ended" in log
        assert scene.server.files["r2", "log.txt"] == b"well\n"
        assert "lease" not in os.listdir(folder)
    finally:
        await scene.server.stop()
