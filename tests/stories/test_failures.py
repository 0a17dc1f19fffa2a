"""What goes wrong, told apart: the script, its memory, its silence, the machine, GitHub."""

from bot.sandbox.hub import Fault
from runners.backends.base import BackendError
from tests.harness.agent import Training
from tests.harness.story import story
from tests.harness.world import World

GOOD = {"validation/accuracy": 90.0, "train/seconds_per_step": 0.1}


def _head_trains(world: World, training: Training) -> None:
    world.script = lambda commit, seed: training if commit == world.pull.head_sha else Training(values=GOOD)


@story
async def test_script_fails(world: World) -> None:
    """The head's script ends with an error: failed, with the end of its log, and what it prints pings nobody."""
    log = "step 1\nRuntimeError: shapes do not fit @maya\n"
    _head_trains(world, Training(reason="user_error", sentence="The script ended with exit status 1.", exit=1, log=log))
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "failed" in results
    assert "exit status 1" in results
    assert "shapes do not fit" in results
    assert world.checks()["benchbot / resnet50"] == ("completed", "failure")


@story
async def test_out_of_memory(world: World) -> None:
    """Memory ran out: said as such, not as some error."""
    sentence = "The device had no memory left."
    _head_trains(world, Training(reason="oom", sentence=sentence, exit=1, log="CUDA out of memory\n"))
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "memory" in results
    assert world.checks()["benchbot / resnet50"] == ("completed", "failure")


@story
async def test_no_metrics(world: World) -> None:
    """The script ended well and wrote nothing that was asked for: not measured, which is never green."""
    _head_trains(world, Training(values={"valdation/accuracy": 90.0}))
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "not measured" in results
    assert "valdation/accuracy" in results
    assert world.checks()["benchbot / resnet50"][1] not in ("success", "skipped")


@story
async def test_diverged(world: World) -> None:
    """NaN is no number: diverged, never green."""
    _head_trains(world, Training(values={**GOOD, "validation/accuracy": float("nan")}))
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "diverged" in results
    assert world.checks()["benchbot / resnet50"][1] not in ("success", "skipped")


@story
async def test_without_metrics_the_exit_status_decides(world: World) -> None:
    """A benchmark that declares no metrics has passed or failed."""
    await world.says("maya", "/benchmark smoke")
    assert "passed" in world.read()[0]
    assert world.checks()["benchbot / smoke"] == ("completed", "success")
    _head_trains(world, Training(reason="user_error", sentence="The script ended with exit status 1.", exit=1))
    await world.says("maya", "/benchmark smoke sha=" + world.pull.head_sha)
    assert "regression" in world.read()[0]


@story
async def test_no_machine_to_be_had(world: World) -> None:
    """Sold out for a while: tried again, and it runs in the end."""
    world.cloud.fail_create = [BackendError("no_capacity", "No zone has such a machine.") for _ in range(3)]
    await world.says("maya", "/benchmark resnet50")
    assert "no change" in world.read()[0]


@story
async def test_a_machine_that_is_lost(world: World) -> None:
    """Taken away in the middle: the work is done again on another machine."""
    world.hold_agents = True
    await world.says("maya", "/benchmark resnet50")
    agent = await world.agent()
    await agent.claim()
    await agent.train(agent.work["runs"][0])
    world.cloud.lose()
    world.hold_agents = False
    await world.settle()
    assert len(world.cloud.created) == 2
    assert "no change" in world.read()[0]


@story
async def test_an_answer_that_is_lost_makes_no_second_comment(world: World) -> None:
    """GitHub says 502 after it has done what was asked: found again, not written twice."""
    world.sandbox.hub.faults.append(Fault(method="POST", path=r"/issues/\d+/comments$", after=True))
    world.sandbox.hub.faults.append(Fault(method="POST", path=r"/check-runs$", after=True))
    await world.says("maya", "/benchmark resnet50")
    results, *_ = world.read()
    assert "no change" in results
    mine = [check for check in world.repository.checks if check.fields["name"] == "benchbot / resnet50"]
    assert len(mine) == 1


@story
async def test_github_is_away_for_a_while(world: World) -> None:
    """Everything fails for some time; nothing is lost."""
    world.sandbox.hub.faults.append(Fault(method="GET", path=r"/pulls/\d+$", status=503, times=3))
    world.sandbox.hub.faults.append(Fault(method="PATCH", path="/", status=500, times=2))
    said = await world.says("maya", "/benchmark resnet50")
    assert world.signs(said) == {"eyes", "rocket"}
    assert "no change" in world.read()[0]


@story
async def test_a_delivery_that_was_missed_is_fetched(world: World) -> None:
    """The server was down when the comment came: GitHub is asked for it at the next start."""
    await world.close_bot()
    await world.comment("maya", "/benchmark smoke")
    await world.sandbox.hooks.send(world.session, world.sandbox.hooks.waiting[0])
    assert world.sandbox.hooks.sent[0].status_code == 0
    await world.open_bot()
    await world.catch_up()
    await world.settle()
    assert "passed" in world.read()[0]
