"""What a run has given, for other programs: from its page, and from the operator's command line."""

import asyncio
import csv
import hashlib
import io
import json
from typing import Any

import msgspec
import pytest
from ruamel.yaml import YAML

from bot.__main__ import main
from bot.report.record import Record
from bot.store.tables import Run
from tests.harness.agent import Training
from tests.harness.story import told
from tests.harness.world import World


async def _get(world: World, path: str) -> str:
    async with world.session.get(f"{world.services.settings.base_url}{path}") as answer:
        assert answer.status == 200, path
        return await answer.text()


def _trains(world: World) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [5, 2], "data_offsets": [0, 40]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(40)

    def script(commit: str, seed: int) -> Training:
        lost = 10.0 * (commit == world.pull.head_sha)
        values = {"validation/accuracy": 90.0 - lost, "train/seconds_per_step": 0.1}
        told = {"phases": {"checkout": 1.5, "setup": 30, "inputs": 0}, "peak_rss_bytes": 10**9}
        told["environment"] = {
            "python": "3.11.7",
            "driver": "580.95.05",
            "devices": ["NVIDIA H100"],
            "frameworks": {"torch": "2.13.0"},
            "cuda": {"torch": "12.8"},
            "packages": ["numpy==2.4.6", "torch==2.13.0"],
        }
        told |= {"device_trouble": "no device"} if lost else {"peak_device_bytes": 2**30}
        return Training(values=values, files={"checkpoints/best.safetensors": weights}, told=told)

    world.script = script


@told
async def test_a_run_tells_all_that_is_known_of_it(world: World) -> None:
    _trains(world)
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    found = json.loads(await _get(world, f"/requests/{request.id}/records.json"))
    # one pair, and the one that repeats it
    assert [(one["side"], one["seed"]) for one in found] == [("head", 1), ("base", 1), ("head", 2), ("base", 2)]
    (one,) = json.loads(await _get(world, f"/runs/{found[0]['run']}/record.json"))
    assert one == found[0]
    read = msgspec.convert(one, Record)
    assert (read.repository, read.pull_request, read.commit) == ("acme/vision", 1, world.pull.head_sha)
    assert (read.benchmark, read.scenario, read.requester, read.state) == ("resnet50", "default", "maya", "done")
    accuracy, step_time = read.metrics
    assert (accuracy.name, accuracy.value, accuracy.unit, accuracy.step, accuracy.points) == (
        "accuracy",
        80.0,
        "pp",
        3,
        3,
    )
    assert (step_time.pick, step_time.value) == ("median", 0.1)
    assert (read.weights_count, read.weights_bytes) == (10, 40)
    assert (read.hardware.name, read.hardware.simulated, read.seconds) == ("local", None, 20.0)
    assert (read.exit_status, read.checkout_s, read.setup_s, read.inputs_s) == (0, 1.5, 30.0, 0.0)
    assert (read.peak_host_bytes, read.peak_device_bytes, found[1]["peak_device_bytes"]) == (10**9, None, 2**30)
    assert read.environment is not None
    assert (read.environment.python, read.environment.platform) == ("3.11.7", None)
    assert (read.environment.devices, dict(read.environment.cuda)) == (("NVIDIA H100",), {"torch": "12.8"})
    lock = hashlib.sha256(b"numpy==2.4.6\ntorch==2.13.0\n").hexdigest()
    assert read.environment.packages_sha256 == lock
    said = f"Python 3.11.7, torch 2.13.0 for CUDA 12.8, driver 580.95.05, 2 packages (sha256 {lock[:12]})"
    assert said in await _get(world, f"/runs/{read.run}")
    assert "checkout 1.5 s, setup 30 s" in await _get(world, f"/runs/{read.run}")
    assert "not measured: no device" in await _get(world, f"/runs/{read.run}")
    assert "1.1 GB" in await _get(world, f"/runs/{found[1]['run']}")
    assert {file.path: len(file.sha256 or "") for file in read.artifacts}["checkpoints/best.safetensors"] == 64
    assert read.health is not None
    assert (read.health.records, read.health.bad_records) == (3, 0)


@told
async def test_a_table_and_a_model_card(world: World) -> None:
    _trains(world)
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    rows = list(csv.DictReader(io.StringIO(await _get(world, f"/requests/{request.id}/records.csv"))))
    assert [(row["side"], row["accuracy (pp)"], row["step_time (s)"]) for row in rows[:2]] == [
        ("head", "80.0", "0.1"),
        ("base", "90.0", "0.1"),
    ]
    # readers of columns by their place must not be surprised: new ones come last, before the metrics
    assert ",".join(rows[0]) == (
        "run,repository,pull_request,commit,side,benchmark,scenario,init,seed,state,hardware,machine_type,seconds,"
        "peak_host_bytes,weights_count,weights_bytes,cost_usd,exit_status,checkout_s,setup_s,inputs_s,peak_device_bytes,"
        "python,driver,packages_sha256,accuracy (pp),step_time (s)"
    )
    assert rows[0]["driver"] == "580.95.05"
    card = YAML(typ="safe", pure=True).load(await _get(world, f"/requests/{request.id}/records.yaml"))
    (model,) = card["model-index"]
    assert model["name"] == "resnet50"
    result: dict[str, Any] = model["results"][0]
    assert result["dataset"]["name"] == "resnet50"
    assert result["metrics"][0] == {"type": "accuracy", "value": 80.0, "name": "accuracy (pp)", "verified": False}


@told
async def test_the_operator_exports_on_the_command_line(world: World) -> None:
    """The same records; what is not there is a clear error."""
    _trains(world)
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    page = f"{world.services.settings.base_url}/requests/{request.id}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOT_DATABASE_URL", world.services.settings.database_url)
        patch.setenv("BENCHBOT_DATA_FOLDER", str(world.services.settings.data_folder))
        with pytest.MonkeyPatch.context() as quiet:
            out, err = io.StringIO(), io.StringIO()
            quiet.setattr("sys.stdout", out)
            quiet.setattr("sys.stderr", err)
            assert await asyncio.to_thread(main, ["export", page]) == 0, err.getvalue()
            assert await asyncio.to_thread(main, ["export", "nothing"]) == 2
    assert out.getvalue() == await _get(world, f"/requests/{request.id}/records.json") + "\n"
    assert "there is no run and no request nothing" in err.getvalue()


@told
async def test_a_run_whose_files_are_gone_tells_what_is_left(world: World) -> None:
    _trains(world)
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    found = json.loads(await _get(world, f"/requests/{request.id}/records.json"))
    await world.services.artifacts.forget(found[0]["run"])
    (one,) = json.loads(await _get(world, f"/runs/{found[0]['run']}/record.json"))
    assert one["health"] is None
    assert one["metrics"][0]["value"] is None
    assert one["metrics"][0]["why"] == "No logs of this run are here."
    async with world.services.database.read() as tx:
        assert (await tx.get_one(Run, one["run"])).state == "done"
