"""Money: what a command may cost is told before, asked where it is much, held back while it runs, and settled after."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from bot.core.money import Limits
from bot.core.nouns import Hardware
from bot.store.tables import Machine, Request
from tests.harness.clouds import cloud_with
from tests.harness.gce import ComputeEngine
from tests.harness.story import told
from tests.harness.world import World

# at 4 USD an hour: (two runs of 10 min + 1 h 45 min around them) = 8.33 USD at most, four runs 9.67 USD
RUN = "/benchmark resnet50 timeout=10m"
SHORT = f"{RUN} pairs=1"


async def _operator(world: World, price: float | None = 4.0, at_once: int = 3, **limits: float) -> None:
    """The operator prices this host and sets limits."""
    settings = world.settings or world.services.settings
    local = replace(settings.hardware["local"], price_usd_per_hour=price, at_once=at_once)
    world.settings = replace(settings, hardware={**settings.hardware, "local": local}, limits=Limits(**limits))
    await world.close_bot()
    await world.open_bot()


async def _trains_for(world: World, minutes: int) -> None:
    """The agent of the machine that has none yet trains for so long, and ends well."""
    agent = await world.agent()
    await agent.claim()
    for _ in range(2 * minutes):
        world.clock.now += 30
        await agent.post("heartbeat", {})
        await world.work()
    for run in agent.work["runs"]:
        await agent.train(run)
    await agent.post("finish", {"outcome": "done", "sentence": ""})
    await world.settle()


async def _page(world: World, path: str) -> str:
    async with world.session.get(f"{world.services.settings.base_url}{path}") as answer:
        assert answer.status == 200, path
        return await answer.text()


@told
async def test_the_plan_says_what_it_may_cost(world: World) -> None:
    """Price x (boot, setup, runs, the end of the machine); and that somebody would have to confirm it."""
    await _operator(world, confirm_usd=9)
    await world.says("sam", f"/benchmark plan {SHORT.removeprefix('/benchmark ')}")
    await world.says("sam", f"/benchmark plan {RUN.removeprefix('/benchmark ')}")
    less, more = world.read()
    assert "Cost at most 8.33 USD in all." in less
    assert "confirm" not in less
    assert "Cost at most 9.67 USD in all. It would wait for somebody to confirm that" in more
    assert world.cloud.created == []


@told
async def test_a_pull_request_that_has_cost_enough(world: World) -> None:
    """What is spent stays spent: refused with the limit, what is left, and the command that would still fit."""
    await _operator(world, pull_usd=10)
    world.hold_agents = True
    await world.says("maya", SHORT)
    await _trains_for(world, 15)
    said = await world.says("tom", RUN)
    assert world.signs(said) == {"eyes", "confused"}
    results, reply = world.read()
    assert "cost $1.0" in results
    assert "This may cost up to 9.67 USD, and 9.00 USD are left of the 10.00 USD that this pull request may" in reply
    assert "(`limits.pull_usd`): 1.00 USD are spent, 0.00 USD are reserved" in reply
    assert "What is spent on a pull request stays spent." in reply
    assert f"This would fit: `{SHORT}`, up to 8.33 USD." in reply
    world.hold_agents = False
    await world.says("tom", SHORT)
    assert len(world.cloud.created) == 2
    world.read()


@told
async def test_what_runs_is_reserved_and_what_is_left_over_comes_back(world: World) -> None:
    """While the first request runs its estimate is held back; when its machine is gone, only its cost is."""
    await _operator(world, repository_usd_per_month=12)
    world.hold_agents = True
    await world.says("maya", SHORT)
    refused = await world.says("tom", SHORT)
    assert world.signs(refused) == {"eyes", "confused"}
    reply = next(body for body in world.read() if "was not started" in body)
    assert "3.67 USD are left of the 12.00 USD that this repository may cost a month" in reply
    assert "`limits.repository_usd_per_month`" in reply
    assert "0.00 USD are spent, 8.33 USD are reserved" in reply
    assert "as soon as its machines are gone" in reply
    assert len(world.cloud.created) == 1
    await _trains_for(world, 2)
    assert "8.33" in await _page(world, "/costs")
    accepted = await world.says("tom", SHORT)
    assert world.signs(accepted) == {"eyes", "rocket"}
    world.hold_agents = False
    await world.settle()
    assert len(world.cloud.created) == 2
    world.read()


@told
async def test_two_commands_that_fit_alone_but_not_together(world: World) -> None:
    """Both pass the first look, for nothing is reserved yet; one is let in, the other says why it is not."""
    await _operator(world, month_usd=12)
    await world.says("maya", f"{SHORT}\n/benchmark bert timeout=10m pairs=1")
    assert len(world.cloud.created) == 1
    first, second = await world.requests()
    assert sorted((first.verdict, second.verdict)) == ["no change", "not measured"]
    refused = next(body for body in world.read() if "Not measured" in body)
    assert "3.67 USD are left of the 12.00 USD that this bot may cost a month" in refused
    assert "action_required" in {conclusion for _, conclusion in world.checks().values()}


@told
async def test_a_person_has_so_much_a_day(world: World) -> None:
    """Somebody else may still ask; tomorrow so may the first."""
    await _operator(world, person_usd_per_day=9)
    world.hold_agents = True
    await world.says("maya", SHORT)
    await _trains_for(world, 15)
    await world.says("maya", SHORT)
    reply = next(body for body in world.read() if "was not started" in body)
    assert "one person may cost a day" in reply
    assert "What is spent counts until 2026-09-2" in reply
    assert "Even `/benchmark resnet50" not in reply  # one pair is the least there is
    world.hold_agents = False
    await world.says("tom", SHORT)
    assert len(world.cloud.created) == 2
    world.clock.now += 24 * 3600
    await world.says("maya", SHORT)
    assert len(world.cloud.created) == 3
    world.read()


@told
async def test_the_refusal_names_a_command_that_fits(world: World) -> None:
    """Typed as it stands, it runs."""
    await _operator(world, budget_usd=9)
    await world.says("maya", RUN)
    (reply,) = world.read()
    assert f"This would fit: `{RUN} pairs=1`, up to 8.33 USD." in reply
    await world.says("maya", "/benchmark resnet50 bert pairs=1 timeout=10m")
    (reply,) = world.read()
    assert "This would fit: `/benchmark resnet50 pairs=1 timeout=10m`, up to 8.33 USD." in reply
    await world.says("maya", f"{RUN} pairs=1")
    assert "no change" in world.read()[0]


@told
async def test_much_money_waits_for_a_second_word(world: World) -> None:
    """Nothing starts until the requester, or somebody with write right, confirms; a push does not matter."""
    await _operator(world, confirm_usd=5)
    await world.says("tom", SHORT)
    (asked,) = world.read()
    assert asked.startswith("### ⏳ Waiting for confirmation")
    assert "This may cost up to 8.33 USD, and what may cost more than 5.00 USD needs a second word" in asked
    assert "`tom` or somebody with write right types `/benchmark confirm`" in asked
    assert "lapses at 2026-09-" in asked
    assert world.checks()["benchbot / resnet50"] == ("queued", None)
    assert world.cloud.created == []
    await world.says("sam", "/benchmark confirm")
    await world.says("sam", "/benchmark status")
    refused, status = world.read()
    assert "asked for by somebody else" in refused
    assert "for `/benchmark confirm`: up to 8.33 USD" in status
    old = world.pull.head_sha
    await world.pushes("ada")
    await world.says("tom", "/benchmark confirm")
    (request,) = await world.requests()
    assert (request.head_sha, request.verdict, request.confirmed_by) == (old, "no change", "tom")
    assert any("confirmed by tom" in comment.body for comment in world.pull.comments)
    await world.says("tom", "/benchmark confirm")
    started, nothing = world.read()
    assert "as confirmed: up to 8.33 USD" in started
    assert "Nothing here waits" in nothing


@told
async def test_a_maintainer_confirms_one_of_two(world: World) -> None:
    """With several that wait, money is spent only by who says clearly on what."""
    await _operator(world, confirm_usd=5)
    await world.says("tom", SHORT)
    await world.says("tom", "/benchmark bert pairs=1")
    await world.says("maya", "/benchmark confirm")
    *_, which = world.read()
    assert "Several requests wait here" in which
    assert "`/benchmark bert pairs=1` (up to 15.00 USD)" in which
    await world.says("maya", "/benchmark confirm bert")
    assert len(world.cloud.created) == 1
    await world.says("tom", "/benchmark cancel")
    waited, confirmed = await world.requests()
    assert (waited.state, waited.want, confirmed.verdict) == ("done", "cancel", "no change")
    assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()


@told
async def test_nobody_confirms(world: World) -> None:
    """After a day it lapses, and nothing was spent."""
    await _operator(world, confirm_usd=5)
    await world.says("maya", SHORT)
    world.clock.now += 23 * 3600
    await world.settle(until=60.0)
    assert world.checks()["benchbot / resnet50"] == ("queued", None)
    world.clock.now += 3600
    await world.settle(until=60.0)
    assert world.checks()["benchbot / resnet50"] == ("completed", "action_required")
    assert "Nobody confirmed within a day what it may cost" in world.read()[0]
    assert world.cloud.created == []


@told
async def test_the_money_is_gone_when_it_is_confirmed(world: World) -> None:
    """What waits reserves nothing: it is asked again when the word comes, and told then."""
    await _operator(world, confirm_usd=9, pull_usd=12)
    await world.says("maya", RUN)
    world.hold_agents = True
    await world.says("tom", SHORT)
    await world.says("maya", "/benchmark confirm")
    refused = next(c.body for c in world.pull.comments if "Not measured" in c.body)
    assert "3.67 USD are left of the 12.00 USD that this pull request may cost" in refused
    assert len(world.cloud.created) == 1
    world.hold_agents = False
    await world.settle()
    world.read()


@told
async def test_an_approval_has_nobody_to_ask(world: World) -> None:
    """Above the limit it is refused, with the line to type instead."""
    await _operator(world, confirm_usd=5)
    await world.reviews("maya", "APPROVE")
    (results,) = world.read()
    assert "What runs by itself has nobody to ask" in results
    assert "`/benchmark @classification on=local`" in results
    assert world.checks()["benchbot"] == ("completed", "action_required")
    assert world.cloud.created == []


@told
async def test_a_price_that_nobody_knows(world: World) -> None:
    """Told in the plan; refused where there is a limit, with what the operator has to set."""
    engine = ComputeEngine(world.clock)
    await engine.start()
    try:
        far = Hardware(
            name="far", backend="gce", listed_usd_per_hour=None, options={"gpu": "a100", "zones": "mars-north1-a"}
        )
        near = replace(far, name="near", options={"gpu": "a100", "zones": "us-central1-a, europe-west4-a"})
        async with cloud_with(world, far, engine):
            settings = world.services.settings
            world.settings = replace(settings, hardware={**settings.hardware, "near": near})
            await world.says("sam", "/benchmark plan resnet50 on=far pairs=1")
            assert "Price unknown: the operator sets `price_usd_per_hour` of `far`." in world.read()[0]
            await _operator(world, month_usd=1000)
            await world.says("maya", "/benchmark resnet50 on=far pairs=1")
            (reply,) = world.read()
            assert "Nobody knows what `far` costs, and there is a limit (`limits.month_usd`)" in reply
            assert "The operator sets `price_usd_per_hour` in `[hardware.far]`." in reply
            await world.says("sam", "/benchmark list")
            (listed,) = world.read()
            assert "`far`: price unknown" in listed
            # the dearest of its zones: 3.68 USD in us-central1, 11 % more in europe-west4
            assert "`near`: at most 4.08 USD per hour by list" in listed
    finally:
        await engine.stop()
    assert engine.inserts == []


@told
async def test_settled_at_the_price_of_each_offer(world: World) -> None:
    """From the order until the cloud says that it is gone, also for a machine that was taken back while it booted."""
    engine = ComputeEngine(world.clock, boot_s=300.0, delete_s=60.0)
    await engine.start()
    try:
        spot = {"gpu": "a100", "zones": "europe-west4-a, us-central1-a", "provisioning": "spot"}
        a100 = Hardware(name="a100x1", backend="gce", listed_usd_per_hour=None, options=spot)
        async with cloud_with(world, a100, engine):
            await world.comment("maya", "/benchmark resnet50 pairs=1 on=a100x1")
            await world.settle(until=180.0)
            ((zone, name),) = engine.instances
            assert zone == "europe-west4-a"
            engine.preempt(name)
            await world.settle()
            assert "cost $0.3" in world.read()[0]
            async with world.services.database.read() as tx:
                (machine,) = await tx.scalars(select(Machine))
    finally:
        await engine.stop()
    assert (machine.zone, machine.attempt, machine.price_usd_per_hour) == ("us-central1-a", 2, 1.84)
    second_s = (machine.gone_at or 0.0) - (machine.ordered_at or 0.0)
    assert 360 <= second_s < 600
    first_s = (machine.cost_usd - second_s / 3600 * 1.84) / (1.84 * 1.11) * 3600
    assert first_s == pytest.approx(180, abs=30)


@told
async def test_the_page_of_costs(world: World) -> None:
    """Month by month, by repository, person and hardware, and request by request; nothing of private ones."""
    await _operator(world, price=40.0)
    world.hold_agents = True
    await world.says("maya", SHORT)
    await _trains_for(world, 15)
    await world.says("tom", "/benchmark bert pairs=1")
    page = await _page(world, "/costs")
    for words in ("2026-09", "By repository", "acme/vision", "By person", "maya", "By hardware", "$10.", "$83.33"):
        assert words in page, words
    assert "$150.00" in page  # reserved for what tom asked for
    world.hold_agents = False
    await world.settle()
    async with world.services.database.write() as tx:
        for request in await tx.scalars(select(Request)):
            request.private = True
    page = await _page(world, "/costs")
    assert "acme/vision" not in page
    assert "maya" not in page
    assert "$10." not in page
    async with world.session.get(f"{world.services.settings.base_url}/costs?month=1999-01") as answer:
        assert answer.status == 404
    world.read()
