"""What people type, and the one visible answer that each command gets."""

from tests.harness.agent import Training
from tests.harness.story import story
from tests.harness.world import World


@story
async def test_typo_answered(world: World) -> None:
    """A name that does not exist: nothing runs, and the reply says what was probably meant."""
    said = await world.says("maya", "/benchmark resnet5")
    assert world.signs(said) == {"eyes", "confused"}
    (reply,) = world.read()
    assert "resnet5" in reply
    assert "Did you mean" in reply
    assert "resnet50" in reply
    assert await world.requests() == []
    assert world.cloud.created == []


@story
async def test_quoted_and_fenced_commands_ignored(world: World) -> None:
    """Commands that are quoted, in code, or hidden are somebody's words about commands."""
    said = await world.says(
        "maya",
        "> /benchmark resnet50\n\nI would not type\n\n```\n/benchmark resnet50\n```\n\n"
        "<!--\n/benchmark resnet50\n-->\n\n    /benchmark resnet50\n\nor `/benchmark resnet50` here.",
    )
    assert world.signs(said) == set()
    assert world.read() == []
    assert await world.requests() == []


@story
async def test_several_commands_get_one_reply(world: World) -> None:
    """Two lines, one good and one not: one request, one joint reply."""
    said = await world.says("maya", "Let us see.\n\n/benchmark resnet50\n/benchmark bret")
    assert world.signs(said) == {"eyes", "confused"}
    bodies = world.read()
    assert len(bodies) == 2
    assert any("bret" in body and "bert" in body for body in bodies)
    assert [request.command for request in await world.requests()] == ["/benchmark resnet50"]


@story
async def test_an_edit_runs_only_what_is_new(world: World) -> None:
    """A comment that is corrected: the line that ran is not run again."""
    said = await world.says("maya", "/benchmark resnet50")
    await world.edits("maya", said, "/benchmark resnet50\n/benchmark bert")
    await world.edits("maya", said, "Thanks!\n\n/benchmark resnet50\n/benchmark bert")
    assert [request.command for request in await world.requests()] == ["/benchmark resnet50", "/benchmark bert"]
    assert len(world.read()) == 2


@story
async def test_help_list_plan_and_status(world: World) -> None:
    """What costs nothing is open to everybody who may comment."""
    await world.says("sam", "/benchmark help")
    await world.says("sam", "/benchmark list")
    await world.says("sam", "/benchmark plan all")
    await world.says("sam", "/benchmark status")
    helped, listed, planned, status = world.read()
    assert "/benchmark cancel" in helped
    assert "resnet50" in listed
    assert "ResNet-50, ten epochs" in listed
    assert "H B B H" in planned
    assert "bert" in planned
    assert status
    assert world.cloud.created == []


@story
async def test_our_own_words_are_not_commands(world: World) -> None:
    """The bot answers people, not bots, and least of all itself."""
    bot = world.land.app.bot
    world.sandbox.acts.comment(world.repository, world.pull.number, bot, "/benchmark resnet50", world.land.app)
    await world.settle()
    assert world.read() == ["/benchmark resnet50"]
    other = world.sandbox.add_account("renovate[bot]", "Bot")
    world.sandbox.acts.comment(world.repository, world.pull.number, other, "/benchmark resnet50")
    await world.settle()
    assert await world.requests() == []
    assert world.read() == []


@story
async def test_cancel_while_running_leaves_nothing(world: World) -> None:
    """Cancelled in the middle of a training: the machine goes, the check says so, and no verdict is made up."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    agent = await world.agent()
    await agent.claim()
    await agent.train(agent.work["runs"][0])
    await world.settle()
    assert world.checks()["benchbot / resnet50"] == ("in_progress", None)
    await world.says("maya", "/benchmark cancel")
    assert world.cloud.machines == {}
    assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    results, *_ = world.read()
    assert "ancelled" in results


@story
async def test_retry_runs_the_same_again(world: World) -> None:
    """`retry` makes a new request of the newest one that failed, on the same commit."""
    good = world.script
    world.script = lambda commit, seed: Training(reason="timeout", sentence="It took too long.", exit=143)
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.script = good
    await world.says("maya", "/benchmark retry")
    first, second = await world.requests()
    assert first.head_sha == second.head_sha
    assert len(world.cloud.created) == 2
    results = world.read()
    assert "It took too long" in results[0]
    assert any("no change" in body or "inconclusive" in body for body in results)
