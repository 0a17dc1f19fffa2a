"""Machines on GitHub Actions: runs of the operator's own runners, whose agents claim with GitHub's identity."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bot.core.nouns import Hardware
from runners.protocol import PREFIX
from tests.harness.actions import Runners, new_key
from tests.harness.clouds import cloud_with
from tests.harness.story import told
from tests.harness.world import World

GPU = Hardware(name="actions-gpu", backend="actions", price_usd_per_hour=0.5, options={"label": "gpu"})


@asynccontextmanager
async def runners_of(world: World, hardware: Hardware = GPU) -> AsyncIterator[Runners]:
    """The world with the hardware actions-gpu; at its end no run may be left."""
    runners = Runners(world.sandbox, world.land.app, world.session, world.clock)
    await runners.start()
    try:
        async with cloud_with(world, hardware, runners):
            yield runners
    finally:
        await runners.stop()
    assert runners.living == [], "runs are left"


async def claims(world: World, runners: Runners, identity: str, nonce: str = "somebody") -> tuple[int, str]:
    """Somebody claims the one run's lease with an identity: status, and what the bot says."""
    lease = runners.runs[-1].inputs["lease"]
    message = {"lease": lease, "identity": identity, "nonce": nonce}
    url = f"{world.services.settings.agent_url}{PREFIX}/claim"
    async with world.session.post(url, json=message) as response:
        answer: dict[str, Any] = await response.json()
        return response.status, answer.get("sentence", "")


@told
async def test_from_dispatch_to_results(world: World) -> None:
    """`on=actions-gpu`: one run is dispatched, its agent claims with the run's identity, and it is ended."""
    async with runners_of(world) as runners:
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        (run,) = runners.runs
        assert (run.label, run.runner) == ("gpu", "runner-gpu")
    (results,) = world.read()
    assert "actions-gpu" in results
    assert "no change" in results or "inconclusive" in results


@told
async def test_no_runner_is_online(world: World) -> None:
    """For half an hour nobody takes the run: cancelled, the cause in the check; what comes later finds no ghost."""
    async with runners_of(world) as runners:
        runners.online.clear()
        world.hold_agents, began = True, world.clock.now
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        assert len(runners.living) == 1
        world.clock.now += 1650
        world.hold_agents = False
        await world.settle()
        assert 1800 <= world.clock.now - began < 2400
        assert {run.conclusion for run in runners.runs} == {"cancelled"}
        (check,) = [check for check in world.repository.checks if check.fields["name"] == "benchbot / resnet50"]
        assert check.fields["conclusion"] not in (None, "success")
        assert "No runner with the label gpu" in str(check.fields["output"])
        assert "No runner with the label gpu" in world.read()[0]
        runners.online.add("gpu")
        runners.take()
        assert await world.services.backends["actions"].list_owned() == ()
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
    assert "no change" in world.read()[0]


@told
async def test_the_second_label_has_one(world: World) -> None:
    """With several labels, each is waited for as long as the operator says."""
    hardware = Hardware(name="actions-gpu", backend="actions", options={"label": "big, gpu"})
    async with runners_of(world, hardware) as runners:
        runners.options["patience_s"] = "60"
        await world.close_bot()
        await world.open_bot()
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        assert [(run.label, run.conclusion) for run in runners.runs] == [("big", "cancelled"), ("gpu", "cancelled")]
    assert "no change" in world.read()[0]


@told
async def test_cancelled_on_githubs_side(world: World) -> None:
    """Somebody presses the button in the middle: the lease begins anew on another run."""
    async with runners_of(world) as runners:
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        runners.take()
        (run,) = runners.runs
        assert (await claims(world, runners, runners.identity(run, world.services.settings.agent_url)))[0] == 200
        await world.settle(until=120)
        run.end("cancelled")
        world.hold_agents = False
        await world.settle()
        assert [run.title[-3:] for run in runners.runs] == ["0/1", "1/1"]
    assert "no change" in world.read()[-1]


@told
async def test_a_run_is_cancelled_with_its_command(world: World) -> None:
    """While nobody has taken it: the run goes with the request."""
    async with runners_of(world) as runners:
        runners.online.clear()
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        assert len(runners.living) == 1
        await world.says("maya", "/benchmark cancel")
        assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_the_bot_is_dead_for_a_day(world: World) -> None:
    """GitHub has ended the job by then, and the lease is told as what it is."""
    async with runners_of(world) as runners:
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        runners.take()
        runners.runs[0].end("timed_out")
        world.clock.now += 86_400
        world.hold_agents = False
        await world.settle()
    assert world.read() != []


@told
async def test_identities_that_open_nothing(world: World) -> None:
    """Forged, of another repository, of another run, ended: refused, and the lease's own agent is not disturbed."""
    async with runners_of(world) as runners:
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        runners.take()
        (run,), audience = runners.runs, world.services.settings.agent_url
        good, true_key = runners.claims(run, audience), runners.key
        runners.key = new_key(9)
        forged = runners.signed(good)
        runners.key = true_key
        for identity in (
            forged,
            runners.signed({**good, "repository": "evil/bench-runners"}),
            runners.signed({**good, "run_id": "1"}),
            runners.signed({**good, "exp": 1_600_000_000}),
            "token",
        ):
            status, said = await claims(world, runners, identity)
            assert (status, "opens no lease" in said) == (401, True)
        runners.away = True
        await world.close_bot()
        await world.open_bot()
        assert (await claims(world, runners, runners.signed(good)))[0] == 503
        runners.away = False
        world.hold_agents = False
        await world.settle()
        assert len(runners.runs) == 1
    assert "no change" in world.read()[-1]


@told
async def test_two_agents_with_one_identity(world: World) -> None:
    """Whoever has got hold of the run's identity too: the second claim ends the lease, as with a token."""
    async with runners_of(world) as runners:
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        runners.take()
        identity = runners.identity(runners.runs[0], world.services.settings.agent_url)
        assert (await claims(world, runners, identity, "first"))[0] == 200
        assert (await claims(world, runners, identity, "first"))[0] == 200
        status, said = await claims(world, runners, identity, "second")
        assert (status, said) == (403, "another agent has claimed this lease")
        world.cloud.driven.add(runners.runs[0].title.partition("/")[0])
        world.hold_agents = False
        await world.settle()
        assert len(runners.runs) == 2
    assert "no change" in world.read()[-1]


@told
async def test_an_identity_where_machines_have_tokens(world: World) -> None:
    """A lease of another backend is not opened by what GitHub says."""
    async with runners_of(world) as runners:
        world.hold_agents = True
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        await world.says("maya", "/benchmark cancel")
        await world.says("maya", "/benchmark bert pairs=1")
        (order,) = world.cloud.machines.values()
        identity = runners.identity(runners.runs[0], world.services.settings.agent_url)
        url = f"{world.services.settings.agent_url}{PREFIX}/claim"
        message = {"lease": order.lease_id, "identity": identity, "nonce": "n"}
        async with world.session.post(url, json=message) as response:
            assert response.status == 401
            assert "claim with the token" in (await response.json())["sentence"]
        world.hold_agents = False
        await world.settle()
    world.read()


@told
async def test_a_stranger_on_shared_runners(world: World) -> None:
    """An allowed command of a stranger still gets no shared runner."""
    async with runners_of(world) as runners:
        await world.says("maya", "/benchmark resnet50 pairs=1 on=actions-gpu")
        assert len(runners.runs) == 1
        fork = await world.sandbox.fork(world.repository, "sam")
        pull = await world.sandbox.acts.open_pull(
            world.repository, world.sandbox.add_account("sam"), "Mine", "", head=(fork, "faster")
        )
        await world.settle()
        await world.says("maya", f"/benchmark resnet50 pairs=1 on=actions-gpu sha={pull.head_sha}", pull)
        assert len(runners.runs) == 1
        assert "ephemeral = true" in world.read(pull)[-1]
    world.read()
