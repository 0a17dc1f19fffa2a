"""Real agents on two hosts of one lease, with torchrun between them."""

import asyncio
import sys

from tests.unit.runners.conftest import Scene

REDUCE = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
print("host", os.environ["BENCHBOT_HOST"], "of", os.environ["BENCHBOT_HOSTS"], "sum", int(total), flush=True)
dist.destroy_process_group()
"""


async def _both(scene: Scene) -> None:
    agents = [
        await scene.agent("--member", str(member), "--base-environment", sys.prefix, folder=f"host-{member}")
        for member in (0, 1)
    ]
    for agent in agents:
        await asyncio.wait_for(agent.communicate(), 120)


async def test_torchrun_finds_the_other_host(scene: Scene) -> None:
    """No option is needed: torchrun reads its variables, and the ranks of both hosts are summed."""
    scene.head = scene.repository.commit({"reduce.py": REDUCE})
    scene.plan(
        scene.run("r1", "torchrun reduce.py"), scene.run("r2", "torchrun reduce.py"), setup="", setup_inputs=[], hosts=2
    )
    await _both(scene)
    server = scene.server
    assert server.finished == {"outcome": "done", "sentence": ""}
    for run in ("r1", "r2"):
        assert "host 0 of 2 sum 3" in server.text(run, "log.txt")
        assert "host 1 of 2 sum 3" in server.text(run, "host-1/log.txt")


async def test_one_that_fails_ends_the_other(scene: Scene) -> None:
    """The first host would wait for ever for the second one: it is ended, and the next run begins on both."""
    fails = 'if [ "$BENCHBOT_HOST" = 1 ]; then echo broken; exit 3; fi; sleep 600'
    scene.plan(scene.run("r1", fails), scene.run("r2", "echo fine"), setup="", setup_inputs=[], hosts=2)
    await _both(scene)
    ended = {
        event["run"]: event for event in scene.server.events if event["kind"] == "run_ended" and "member" not in event
    }
    assert ended["r1"]["reason"] == "user_error"
    assert ended["r1"]["sentence"] == "elsewhere: the command ended with status 3"
    assert ended["r2"]["reason"] == ""
    assert scene.server.text("r2", "host-1/log.txt") == "fine\n"
