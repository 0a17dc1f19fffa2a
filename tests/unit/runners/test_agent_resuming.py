"""The real agent on a machine that is taken away, and the next one that goes on."""

import asyncio
import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest

from runners.agent import shipping
from runners.agent.link import Link, RefusedError
from runners.agent.shipping import Shipment
from tests.unit.runners.conftest import Scene

# counts up to 400 and saves each count; goes on from what it finds
COUNT = """python - <<'END'
import os, pathlib, time
place = pathlib.Path(os.environ["BENCHBOT_CHECKPOINTS"])
step = 0
if "BENCHBOT_RESUME_DIR" in os.environ:
    step = int(pathlib.Path(os.environ["BENCHBOT_RESUME_DIR"], "last.txt").read_text())
    print("goes on after", step)
log = open(os.path.join(os.environ["BENCHBOT_LOGDIR"], "metrics.jsonl"), "a")
last = {steps}
while step < last:
    step += 1
    print('{{"step": %d, "loss": 1.0}}' % step, file=log, flush=True)
    (place / "fresh").write_text(str(step))
    (place / "fresh").rename(place / "last.txt")
    time.sleep(0.01)
print("reached", step)
END"""


async def test_what_was_saved_is_gone_on_from(scene: Scene) -> None:
    """The machine says that it goes; the agent ships what there is; the next one brings it back and ends the run."""
    scene.plan(scene.run("r1", COUNT, words={"steps": "400"}), scene.run("r2", "echo never"), interruptible=True)
    agent = await scene.agent(folder="first")
    server = scene.server
    await server.until(lambda: len(server.files.get(("r1", "logs/metrics.jsonl"), b"")) > 300)
    agent.terminate()
    await asyncio.wait_for(agent.communicate(), 30)
    assert server.finished == {"outcome": "interrupted", "sentence": "the machine is being taken away"}
    assert server.ended() == {}, "nothing has ended yet"
    saved = int(server.text("r1", "checkpoints/last.txt"))
    assert 0 < saved < 400

    kept = [
        {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for (_, path), data in server.files.items()
    ]
    scene.plan(scene.run("r1", COUNT, words={"steps": str(saved + 20)}, kept=kept))
    await scene.finish()
    log = server.text("r1", "log.txt")
    assert f"goes on after {saved}" in log
    assert f"reached {saved + 20}" in log
    assert "the machine was taken away" in log
    steps = server.text("r1", "logs/metrics.jsonl").splitlines()
    assert len(steps) >= saved + 20, "the curve begins where the first machine began"
    assert server.ended()["r1"]["reason"] == ""


async def test_a_file_that_comes_back_damaged_is_not_used(scene: Scene) -> None:
    """Better from the start than from half a checkpoint."""
    scene.server.files["r1", "checkpoints/last.txt"] = bytearray(b"7")
    kept = [{"path": "checkpoints/last.txt", "size": 1, "sha256": hashlib.sha256(b"8").hexdigest()}]
    scene.plan(scene.run("r1", COUNT, words={"steps": "3"}, kept=kept))
    await scene.finish()
    log = scene.server.text("r1", "log.txt")
    assert "checkpoints/last.txt could not be brought back" in log
    assert "goes on" not in log
    assert "reached 3" in log


class Bot(Link):
    """Keeps what is sent; a manifest of what was sent under another name gives it its own."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9", threading.Event())
        self.files: dict[str, bytes] = {}
        self.away = False

    def put(self, run: str, path: str, offset: int, patience_s: float, body: bytes) -> int:
        if self.away:
            raise RefusedError(413, {})
        self.files[path] = self.files.get(path, b"")[:offset] + body
        return len(self.files[path])

    def post(self, path: str, message: Any, patience_s: float) -> dict[str, Any]:
        for item in message["files"]:
            self.files[item["path"]] = self.files.pop(item["sent_as"])
        return {"wanted": []}


async def test_checkpoints_are_sent_when_they_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still being written waits; a newer one takes the place of the older one only when it has arrived."""
    monkeypatch.setattr(shipping, "_EVERY_S", 0.02)
    monkeypatch.setattr(shipping, "_STILL_LOOKS", 1)
    place = tmp_path / "outputs" / "checkpoints"
    place.mkdir(parents=True)
    (tmp_path / "log.txt").write_text("")
    bot = Bot()
    shipment = Shipment(bot, "r1", tmp_path / "log.txt", tmp_path / "outputs", None)
    shipment.checkpoints_early = True

    async def sent(content: bytes) -> None:
        for _ in range(300):
            if bot.files.get("checkpoints/last.pt") == content:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(bot.files)

    with shipment.streaming():
        (place / "last.pt").write_bytes(b"one")
        await sent(b"one")
        (place / "new").write_bytes(b"two, longer")
        (place / "new").rename(place / "last.pt")
        await sent(b"two, longer")
    assert shipment.complete(0.0)
    assert bot.files["checkpoints/last.pt"] == b"two, longer"
    assert not [path for path in bot.files if path.endswith(".part")]
