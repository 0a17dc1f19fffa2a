"""What the bot serves: the webhook under bad input, pages, files, TensorBoard; and nothing to strangers."""

import asyncio
import hashlib
import hmac
import io
import json
import re
from typing import Any

from sqlalchemy import func, select
from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from bot.store.tables import Delivery, Request
from runners.protocol import PREFIX
from tests.harness.agent import Training
from tests.harness.story import told
from tests.harness.world import World

EVENT_FILE = "logs/events.out.tfevents.1.here"


def _event_file(tag: str, values: list[float]) -> bytes:
    """An event file as TensorBoard's own writer makes it."""

    class Buffer(bytearray):
        def write(self, data: bytes) -> None:
            self.extend(data)

    buffer = Buffer()
    writer = RecordWriter(buffer)
    writer.write(event_pb2.Event(wall_time=1000.0, file_version="brain.Event:2").SerializeToString())
    for step, value in enumerate(values):
        event = event_pb2.Event(wall_time=1000.0 + step, step=step)
        event.summary.value.add(tag=tag, simple_value=value)
        writer.write(event.SerializeToString())
    return bytes(buffer)


def _with_files(world: World) -> None:
    def script(commit: str, seed: int) -> Training:
        head = commit == world.pull.head_sha
        values = {"validation/accuracy": 90.0, "train/seconds_per_step": 0.1}
        files = {
            EVENT_FILE: _event_file("curve/loss", [3.0, 2.0, 1.5 if head else 1.0]),
            "checkpoints/best.bin": b"weights of head" if head else b"weights of base",
        }
        return Training(values=values, files=files, log="\x1b[31mtraining\x1b[0m <b>@maya</b>\n")

    world.script = script


async def _get(world: World, address: str, status: int = 200, **headers: str) -> tuple[Any, bytes]:
    async with world.session.get(address, headers={"Accept": "text/html", **headers}) as answer:
        body = await answer.read()
        assert answer.status == status, (address, answer.status, body[:300])
        return answer.headers, body


def _events(stream: bytes, name: str) -> list[Any]:
    """The data of all events of one name."""
    found = re.findall(rb"event: (\w+)\ndata: (.*)\n\n", stream)
    return [json.loads(data) for told, data in found if told == name.encode()]


@told
async def test_every_link_of_the_comment_answers(world: World) -> None:
    """Request page, run pages, checkpoints, TensorBoard, curves: all answer 200 and are harmless."""
    _with_files(world)
    await world.says("maya", "/benchmark resnet50 pairs=1")
    (results, *_) = world.read()
    links = set(re.findall(r'https?://[^\s)"<>#]+', results))
    assert len(links) >= 5
    for link in links:
        headers, _ = await _get(world, link)
        assert headers["X-Content-Type-Options"] == "nosniff"
    picture = next(link for link in links if link.endswith(".png"))
    _, overlaid = await _get(world, picture.replace(".png", ".json"))
    assert [side["side"] for side in json.loads(overlaid)[0]["sides"]] == ["head", "base"]
    page = next(link for link in links if re.search(r"/requests/[a-z2-7]{26}$", link))
    _, text = await _get(world, page)
    assert b"resnet50" in text
    run = re.search(rb"/runs/[a-z2-7]{26}", text)
    assert run is not None
    base = world.services.settings.base_url
    _, log = await _get(world, f"{base}{run[0].decode()}/log")
    assert b"training" in log
    _, shown = await _get(world, base + run[0].decode())
    assert b"<b>@maya" not in shown
    _, told = await _get(world, f"{base}{run[0].decode()}/events")
    assert {curve["tag"] for curve in _events(told, "curves")[0]} == {
        "curve/loss",
        "validation/accuracy",
        "train/seconds_per_step",
    }
    headers, weights = await _get(world, f"{base}{run[0].decode()}/files/checkpoints/best.bin")
    assert weights.startswith(b"weights of")
    assert headers["Content-Disposition"].startswith("attachment")


@told
async def test_a_secret_in_the_log_is_readable_nowhere(world: World) -> None:
    """Printed by a script, whole or over several lines: masked in comment, page, live log and download."""
    token = "ghp_" + "a1B2" * 9
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq83vEjRWeJ\n-----END RSA PRIVATE KEY-----"
    log = f"using {token}\nclone https://maya:{token}@example.org/x\n{key}\nbefore the end {token}"
    world.script = lambda commit, seed: Training(reason="user_error", sentence=f"ended: {token}", exit=1, log=log)
    await world.says("maya", "/benchmark smoke pairs=1")
    said = world.read()
    (request,) = await world.requests()
    base = world.services.settings.base_url
    _, page = await _get(world, f"{base}/requests/{request.id}")
    run = re.search(rb"/runs/[a-z2-7]{26}", page)
    assert run is not None
    address = base + run[0].decode()
    shown = [page, (await _get(world, address))[1], *(body.encode() for body in said)]
    headers, live = await _get(world, f"{address}/log")
    shown += [live, (await _get(world, f"{address}/files/log.txt"))[1]]
    assert int(headers["X-Offset"]) == len(live)
    assert (await _get(world, f"{address}/log?offset={len(live)}"))[1] == b""
    assert b"before the end" in live
    for text in shown:
        for secret in (token.encode(), b"MIIEowIBAAKCAQEA", b"q83vEjRWeJ"):
            assert secret not in text, text[max(0, text.index(secret) - 300) :][:400]


@told
async def test_tensorboard_shows_head_and_base_side_by_side(world: World) -> None:
    """The data of both sides through TensorBoard's own addresses, without a process of its own."""
    _with_files(world)
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    board = f"{world.services.settings.base_url}/requests/{request.id}/tensorboard/"
    _, page = await _get(world, board)
    assert b"TensorBoard" in page or b"tf-tensorboard" in page or b"<tb-webapp" in page
    _, runs = await _get(world, board + "data/runs", Accept="application/json")
    assert json.loads(runs) == ["base/2 seed 1", "head/1 seed 1"]
    _, tags = await _get(world, board + "data/plugin/scalars/tags", Accept="application/json")
    assert "curve/loss" in json.loads(tags)["head/1 seed 1"]
    query = "data/plugin/scalars/scalars?run=head%2F1+seed+1&tag=curve%2Floss"
    _, points = await _get(world, board + query, Accept="application/json")
    assert [(step, value) for _, step, value in json.loads(points)] == [(0, 3.0), (1, 2.0), (2, 1.5)]
    await _get(world, f"{world.services.settings.base_url}/requests/{'a' * 26}/tensorboard/", 404)


@told
async def test_what_is_private_or_unknown_is_not_there(world: World) -> None:
    """Pages of private repositories answer 404, like those that do not exist; so do paths that climb out."""
    _with_files(world)
    world.repository.private = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    base = world.services.settings.base_url
    async with world.services.database.read() as tx:
        assert (await tx.scalar(select(Request.private))) is True
    for path in (f"/requests/{request.id}", f"/requests/{request.id}/tensorboard/", "/requests/none", "/runs/none"):
        await _get(world, base + path, 404)
    _, index = await _get(world, base + "/")
    assert request.id.encode() not in index
    world.repository.private = False
    await world.hook("repository", "maya", action="publicized")
    _, page = await _get(world, f"{base}/requests/{request.id}")
    run = re.search(rb"/runs/[a-z2-7]{26}", page)
    assert run is not None
    for path in ("../../../benchbot.sqlite", "..%2f..%2fbenchbot.sqlite", "%2e%2e/log.txt", "log.txt%00", "nothing"):
        await _get(world, f"{base}{run[0].decode()}/files/{path}", 404)


@told
async def test_bad_webhooks_are_refused_and_leave_nothing(world: World) -> None:
    """Unknown events, huge bodies, broken JSON, wrong signatures: one sentence, no traceback, nothing stored twice."""
    settings = world.services.settings

    async def send(raw: bytes, *, signed: bool = True, guid: str = "g1", kind: str = "application/json") -> int:
        secret = settings.webhook_secret if signed else "wrong"
        headers = {
            "Content-Type": kind,
            "X-GitHub-Event": "issue_comment",
            "X-GitHub-Delivery": guid,
            "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest(),
        }
        async with world.session.post(f"{settings.base_url}/webhook", data=io.BytesIO(raw), headers=headers) as answer:
            body = await answer.text()
            assert "Traceback" not in body
            assert answer.status == 202 or 400 <= answer.status < 500, body
            return answer.status

    before = await _deliveries(world)
    assert await send(b"{") == 400
    assert await send(b"{}", signed=False) == 401
    assert await send(b"{}", kind="text/plain") == 415
    assert await send(b"[]") == 400
    assert await send(b'{"x": "' + b"y" * (26 * 1024 * 1024) + b'"}') == 413
    assert await _deliveries(world) == before
    odd = json.dumps(
        {"action": "created", "issue": 7, "repository": {"id": "x"}, "installation": {"id": None}}
    ).encode()
    assert await send(odd, guid="odd") == 202
    assert await send(odd, guid="odd") == 202
    await asyncio.gather(*(send(b'{"zen": 1}', guid="same") for _ in range(20)))
    assert await _deliveries(world) == before + 2
    large = json.dumps({"action": "created", "text": "x" * 20_000_000}).encode()
    assert await send(large, guid="large") == 202
    await world.settle()
    async with world.session.get(f"{settings.base_url}/webhook") as answer:
        assert answer.status == 405


async def _deliveries(world: World) -> int:
    async with world.services.database.read() as tx:
        return int(await tx.scalar(select(func.count()).select_from(Delivery)) or 0)


@told
async def test_what_an_agent_may_not_do(world: World) -> None:
    """Without a lease, with another's run, with a path that climbs out, after the end: refused."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    agent = await world.agent()
    await agent.claim()
    mine = agent.work["runs"][0]["id"]
    api = f"{world.services.settings.agent_url}{PREFIX}"
    key = {"Authorization": f"Bearer {agent.credential}"}

    async def status(method: str, path: str, headers: dict[str, str], data: Any = b"{}") -> int:
        async with world.session.request(method, api + path, headers=headers, data=data) as answer:
            await answer.read()
            return answer.status

    assert await status("POST", "/heartbeat", {}) == 401
    assert await status("POST", "/heartbeat", {"Authorization": "Bearer x"}) == 401
    assert await status("POST", "/heartbeat", key) == 200
    assert await status("POST", "/event", key, b"{") == 400
    assert await status("POST", "/event", key, b'{"kind": "dance"}') == 400
    assert await status("PUT", f"/runs/{'b' * 26}/files/log.txt?offset=0", key, b"x") == 404
    for path in ("../x", "%2e%2e/x", "/etc/passwd", "a//b", "a\\..\\b"):
        assert await status("PUT", f"/runs/{mine}/files/{path}?offset=0", key, b"x") in (400, 404)
    assert await status("PUT", f"/runs/{mine}/files/log.txt?offset=5", key, b"x") == 409
    assert await status("PUT", f"/runs/{mine}/files/log.txt?offset=x", key, b"x") == 400
    foreign = f"/source/{world.repository.owner.login}/other.git/info/refs?service=git-upload-pack"
    assert await status("GET", foreign, key) == 403
    own = f"/source/{world.repository.full_name}.git/info/refs?service="
    assert await status("GET", own + "git-receive-pack", key) == 403
    assert await status("GET", own + "git-upload-pack", key) == 200
    claim = {"lease": agent.order.lease_id, "token": agent.order.token, "nonce": "another", "agent": "x", "version": 1}
    world.hold_agents = False
    await agent.run()
    await world.settle()
    assert await status("POST", "/heartbeat", key) == 401
    assert await status("POST", "/claim", {}, json.dumps(claim).encode()) == 401
    world.read()


@told
async def test_a_second_agent_ends_the_lease_on_that_machine(world: World) -> None:
    """Two agents with one token: neither result can be trusted, so another machine does it all again."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50 pairs=1")
    agent = await world.agent()
    await agent.claim()
    claim = {"lease": agent.order.lease_id, "token": agent.order.token, "nonce": "another", "version": 1}
    url = f"{world.services.settings.agent_url}{PREFIX}/claim"
    async with world.session.post(url, json=claim) as answer:
        assert answer.status == 403
    world.hold_agents = False
    await world.settle()
    assert len(world.cloud.created) == 2
    results = world.read()[0]
    assert "inconclusive" in results or "no change" in results


@told
async def test_health_and_figures_for_operators(world: World) -> None:
    """Alive, and rows by state for whoever scrapes them."""
    await world.says("maya", "/benchmark smoke pairs=1")
    world.read()
    base = world.services.settings.base_url
    _, alive = await _get(world, base + "/healthz")
    assert json.loads(alive) == {"status": "ok"}
    _, figures = await _get(world, base + "/metrics")
    assert b'benchbot_rows{noun="request",state="done"} 1.0' in figures
    _, missing = await _get(world, base + "/nothing", 404)
    assert b"<html" in missing
