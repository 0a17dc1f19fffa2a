"""Somebody looks at a run's page while it trains: log and curves come as they are written, and are those that count."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import ClientResponse

from bot.measure.readers import read_folder
from runners.protocol import LOG_FILE, LOG_FOLDER
from tests.harness.agent import Training
from tests.harness.story import told
from tests.harness.world import World
from tests.unit.measure.records import file_of, places

EVENTS = f"{LOG_FOLDER}/events.out.tfevents.1"


async def _told_by(answer: ClientResponse) -> AsyncIterator[tuple[str, str, Any]]:
    """Name, id and data of each event."""
    fields: dict[str, str] = {}
    async for line in answer.content:
        name, _, text = line.decode().rstrip("\n").partition(": ")
        if name == "" and "event" in fields:
            yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
        fields = fields | {name: text} if name else {}


class _Page:
    """What a page shows of a stream."""

    def __init__(self, answer: ClientResponse) -> None:
        self.log, self.state, self.last_id, self.ended = "", "", "", False
        self.curves: dict[str, list[list[float | None]]] = {}
        self._events = _told_by(answer)

    async def until(self, reached: Any) -> None:
        """Take events in until it is so; a stream that ends before has failed."""
        async with asyncio.timeout(20):
            while not reached():
                name, last_id, data = await anext(self._events)
                self.last_id = last_id or self.last_id
                if name == "log":
                    self.log += data["text"]
                elif name == "state":
                    self.state = data["state"]
                elif name == "end":
                    self.ended = True
                for curve in data if name == "curves" else ():
                    key = f"{curve['run']}/{curve['tag']}"
                    self.curves[key] = curve["points"] if curve["anew"] else self.curves[key] + curve["points"]


@told
async def test_a_page_that_is_open_while_a_run_trains(world: World) -> None:
    """Every point appears when it has been shipped; what is shown at the end is what the shipped files hold."""
    world.hold_agents = True
    await world.says("maya", "/benchmark smoke pairs=1")
    agent = await world.agent()
    await agent.claim()
    run = agent.work["runs"][0]
    address = f"{world.services.settings.base_url}/runs/{run['id']}/events"
    data, log = file_of("loss", 900), "epoch 1\nepoch 2, ü\nno end of line"
    cut = places(data)[101] + 20
    await agent.post("event", {"kind": "run_started", "run": run["id"]})
    async with world.session.get(address) as answer:
        assert answer.content_type == "text/event-stream"
        page = _Page(answer)
        await agent.put(f"runs/{run['id']}/files/{EVENTS}?offset=0", data[:cut])
        await page.until(lambda: page.curves)
        assert page.state == "running"
        assert page.curves["./loss"] == [[step, step / 2] for step in range(100)]
        await agent.put(f"runs/{run['id']}/files/{LOG_FILE}?offset=0", log[:15].encode())
        await page.until(lambda: page.log)
        # a line is shown when it is finished: a secret may be cut in two
        assert page.log == "epoch 1\n"
    async with world.session.get(address, headers={"Last-Event-ID": page.last_id}) as answer:
        again = _Page(answer)
        await agent.put(f"runs/{run['id']}/files/{EVENTS}?offset={cut}", data[cut:])
        await agent.put(f"runs/{run['id']}/files/{LOG_FILE}?offset=15", log.encode()[15:])
        await again.until(lambda: len(again.log) > 5 and again.curves["./loss"][-1][0] == 899)
        assert again.log == "epoch 2, ü\n"
        values = {"validation/accuracy": 90.0, "train/seconds_per_step": 0.1}
        agent.script = lambda commit, seed: Training(values=values, log=log, files={EVENTS: data})
        for each in agent.work["runs"]:
            await agent.train(each)
        await agent.post("finish", {"outcome": "done", "sentence": ""})
        await again.until(lambda: again.ended)
    assert page.log + again.log == log
    assert again.state == "done"
    curve = read_folder((await world.services.logs_of(run["id"])) / LOG_FOLDER).curves[".", "loss"]
    shown = again.curves["./loss"]
    assert shown[-1] == [899, float(curve.values[-1])]
    assert max(value for _, value in shown) == float(curve.values.max())
    assert {tuple(point) for point in shown} <= set(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
    await world.settle()
    assert "smoke" in world.read()[0]


@told
async def test_a_run_that_has_nothing_left_to_learn_is_stopped(world: World) -> None:
    """Three values in a row that are no numbers: the agent is told to end the run, and people are told why."""
    world.hold_agents = True
    await world.says("maya", "/benchmark bert pairs=1")
    agent = await world.agent()
    await agent.claim()
    run, other = agent.work["runs"]
    await agent.post("event", {"kind": "run_started", "run": run["id"]})
    path = f"runs/{run['id']}/files/logs/metrics.jsonl"
    rows = [json.dumps({"step": at, "validation/accuracy": "NaN" if at > 3 else 50.0}) + "\n" for at in range(7)]
    await agent.put(f"{path}?offset=0", "".join(rows[:6]).encode())
    await world.settle(until=30)
    # a single NaN, or two, may be a step that mixed precision skipped
    assert "abort" not in await agent.post("heartbeat", {})
    await agent.put(f"{path}?offset={len(''.join(rows[:6]))}", rows[6].encode())
    await world.settle(until=30)
    answer = await agent.post("heartbeat", {})
    assert answer["abort"] == run["id"]
    assert answer["why"] == "The training diverged and was stopped: accuracy is nan since step 4."
    failed = {"kind": "run_ended", "run": run["id"], "exit": -15, "seconds": 9.0, "reason": "user_error"}
    await agent.post("event", {**failed, "sentence": answer["why"], "imported": "", "log_tail": ""})
    assert "abort" not in await agent.post("heartbeat", {})
    await agent.train(other)
    await agent.post("finish", {"outcome": "done", "sentence": ""})
    await world.settle()
    assert "The training diverged and was stopped: accuracy is nan since step 4." in world.read()[0]
