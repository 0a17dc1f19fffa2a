"""Machines of every backend with the real agent on them: from the comment to its results, and nothing is left.

The clouds are stand-ins, so the agent of each machine is a process here; checkout, trainings and files are real.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runners.bundle import build_agent
from runners.spec import MachineOrder
from tests.harness.land import CONFIG
from tests.harness.pool import FakeHost
from tests.harness.world import World, open_world
from tests.stories.test_actions import runners_of
from tests.stories.test_clouds import compute_engine
from tests.stories.test_kubernetes import cluster
from tests.stories.test_pool import pool
from tests.stories.test_tpu import cloud_tpu

# the step is no test of this machine's speed: both sides write down the same
TRAINING = rb"""
import json, os
print("training on seed", os.environ["BENCHBOT_SEED"])
seed = int(os.environ["BENCHBOT_SEED"])
with open(os.path.join(os.environ["BENCHBOT_LOGDIR"], "metrics.jsonl"), "w") as file:
    for step in range(1, 11):
        values = {"validation/accuracy": 80 + step + seed % 7 / 100, "train/seconds_per_step": 0.1 + seed % 7 / 10_000}
        file.write(json.dumps({"step": step, **values}) + "\n")
with open(os.path.join(os.environ["BENCHBOT_CHECKPOINTS"], "last.bin"), "wb") as file:
    file.write(bytes(1000))
"""


@dataclass
class RealAgents:
    """Runs the agent of each order as its machine would; `ended` are their exit statuses by machine."""

    folder: Path
    ended: dict[str, int] = field(default_factory=dict)

    async def __call__(self, order: MachineOrder) -> None:
        place = self.folder / order.name
        place.mkdir(parents=True)
        (place / "agent.pyz").write_bytes(await asyncio.to_thread(build_agent))
        (place / "proof").write_text(order.token)
        # three parts with points between them are a signed identity
        proof = "--identity-file" if order.token.count(".") == 2 else "--token-file"
        words = ["--server", order.server_url, "--lease", order.lease_id, proof, str(place / "proof")]
        words += ["--folder", str(place / "lease"), "--deadline", str(time.time() + 300), "--trusted"]
        with (place / "log").open("wb") as log:
            agent = await asyncio.create_subprocess_exec(
                sys.executable, str(place / "agent.pyz"), *words, cwd=place, stdout=log, stderr=log
            )
            self.ended[order.name] = await asyncio.wait_for(agent.wait(), 240)

    def logs(self) -> str:
        """What all of them printed."""
        return "\n".join(log.read_text() for log in self.folder.glob("*/log"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path / "world") as made:
        # the agents' clock is the real one; they hear of their deadline from the bot
        made.clock.now = time.time()
        config = CONFIG.replace(b"setup: pip install -e .\n", b"").replace(
            b"run: python train.py --model resnet50 --seed {seed}", b"run: python .github/train.py"
        )
        files = {".github/benchmark.yml": config, ".github/train.py": TRAINING}
        await made.sandbox.push(made.repository, "maya", "main", files)
        await made.pushes("ada", {".github/train.py": TRAINING, "README.md": b"# faster\n"})
        await made.settle()
        yield made


Place = Callable[[World], AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize(
    ("hardware", "place"),
    [
        pytest.param("a100x1", compute_engine, id="gce"),
        pytest.param("v5e-8", cloud_tpu, id="tpu"),
        pytest.param("gke-l4", cluster, id="kubernetes"),
        pytest.param("actions-gpu", runners_of, id="actions"),
        pytest.param("xpu", lambda world: pool(world, FakeHost("max-1")), id="pool"),
    ],
)
async def test_the_real_agent_brings_results(world: World, tmp_path: Path, hardware: str, place: Place) -> None:
    """`on=...`: one machine, whose agent checks out both commits, trains them, and ships numbers and checkpoints."""
    agents = RealAgents(tmp_path / "machines")
    world.drive = agents
    async with place(world):
        await world.says("maya", f"/benchmark resnet50 pairs=1 vs=base on={hardware}")
        results = world.read()[-1]
    assert list(agents.ended.values()) == [0], agents.logs()
    assert hardware in results
    assert "last.bin" in results
    assert "no change" in results or "inconclusive" in results, results + agents.logs()
    await world.check_the_end()
