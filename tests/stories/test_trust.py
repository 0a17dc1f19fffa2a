"""Who may make a machine run what: the commit that was meant, by somebody who may."""

from tests.harness.story import story
from tests.harness.world import World


async def _fork_pull(world: World) -> None:
    """sam opens a pull request from a fork."""
    fork = await world.sandbox.fork(world.repository, "sam")
    await world.sandbox.push(fork, "sam", "faster", {"train.py": b"print('from a fork')\n"})
    world.pull = await world.sandbox.acts.open_pull(
        world.repository, world.sandbox.add_account("sam"), "A model", "Please train it.", head=(fork, "faster")
    )
    await world.settle()


@story
async def test_stranger_refused(world: World) -> None:
    """Somebody without a right on the repository: a polite no, and nothing runs."""
    said = await world.says("sam", "/benchmark resnet50")
    assert world.signs(said) == {"eyes", "confused"}
    (reply,) = world.read()
    assert "triage" in reply
    assert "maintainer" in reply
    assert world.cloud.created == []


@story
async def test_head_moved_meanwhile(world: World) -> None:
    """Pushed between the comment and our look at it: refused, with the command to type for the new head."""
    old = world.pull.head_sha
    await world.comment("maya", "/benchmark resnet50")
    # the comment arrives; the push is made before anybody looks at it
    (delivery,) = world.sandbox.hooks.waiting
    await world.sandbox.hooks.send(world.session, delivery)
    new = await world.pushes("ada")
    await world.settle()
    (reply,) = world.read()
    assert old[:10] in reply
    assert f"/benchmark resnet50 sha={new}" in reply
    assert world.cloud.created == []


@story
async def test_a_push_does_not_cancel_what_a_person_asked_for(world: World) -> None:
    """The results of the old head come, and say that they are outdated."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    old = world.pull.head_sha
    new = await world.pushes("ada")
    await world.settle()
    agent = await world.agent()
    await agent.run()
    await world.settle()
    results, *_ = world.read()
    assert "Outdated" in results
    assert old[:7] in results
    assert new[:7] in results


@story
async def test_fork_needs_the_commit_to_be_allowed(world: World) -> None:
    """A fork's commit runs only on the word of somebody with write right, and only that commit."""
    await _fork_pull(world)
    await world.says("tom", "/benchmark resnet50")
    await world.says("maya", "/benchmark resnet50")
    assert world.cloud.created == []
    for_tom, for_maya = world.read()
    assert f"/benchmark allow {world.pull.head_sha}" in for_tom
    assert f"sha={world.pull.head_sha}" in for_maya
    await world.says("maya", f"/benchmark allow {world.pull.head_sha}")
    await world.says("tom", "/benchmark resnet50")
    assert len(world.cloud.created) == 1
    allowed, results = world.read()
    assert world.pull.head_sha[:7] in allowed
    assert "no change" in results
    head = (await world.sandbox.push(world.pull.head_repository or world.repository, "sam", "faster", {"a": b"b"}))[:10]
    await world.settle()
    await world.says("tom", "/benchmark resnet50")
    assert len(world.cloud.created) == 1
    (reply,) = world.read()
    assert head in reply


@story
async def test_no_isolation_no_strangers_code(world: World) -> None:
    """Where machines cannot keep a stranger's code away from the bot, it does not run, whoever allowed it."""
    world.cloud.not_isolated = "This host cannot start it as another user."
    await _fork_pull(world)
    await world.says("maya", f"/benchmark resnet50 sha={world.pull.head_sha}")
    results, *_ = world.read()
    assert "as another user" in results
    assert world.cloud.created == []
    assert world.checks()["benchbot / resnet50"][1] != "success"


@story
async def test_approval_runs_that_commit(world: World) -> None:
    """An approving review starts what the base configured, on exactly the commit that was approved."""
    approved = world.pull.head_sha
    await world.reviews("maya", "APPROVE", "Looks good.")
    (request,) = await world.requests()
    assert request.kind == "approval"
    assert request.head_sha == approved
    assert world.checks()["benchbot"] == ("completed", "success")
    results, *_ = world.read()
    assert approved[:7] in results


@story
async def test_an_approval_by_somebody_without_write_right_runs_nothing(world: World) -> None:
    """GitHub lets everybody review; only people with write right start machines by it."""
    await world.reviews("tom", "APPROVE")
    await world.reviews("sam", "APPROVE")
    assert await world.requests() == []
    assert world.read() == []


@story
async def test_a_dismissed_approval_is_cancelled(world: World) -> None:
    """Dismissed while it waits or runs: cancelled, and the machine goes."""
    world.hold_agents = True
    review = await world.reviews("maya", "APPROVE")
    maya = world.sandbox.add_account("maya")
    world.sandbox.acts.dismiss(world.repository, world.pull.number, review, maya, "Too early.")
    await world.settle()
    assert world.cloud.machines == {}
    assert world.checks()["benchbot"] == ("completed", "cancelled")
    world.read()


@story
async def test_closing_cancels(world: World) -> None:
    """Closed unmerged: nobody needs the numbers any more."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    await world.sandbox.acts.close(world.repository, world.pull.number, world.sandbox.add_account("ada"))
    await world.settle()
    assert world.cloud.machines == {}
    assert world.checks()["benchbot / resnet50"] == ("completed", "cancelled")
    world.read()
