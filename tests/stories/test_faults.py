"""Faults that systems of this kind have had, as conversations; numbered as in the collection of real cases."""

import json
from dataclasses import replace

from sqlalchemy import select

from bot.core.money import Limits
from bot.sandbox import bare
from bot.sandbox.hub import Fault
from bot.store.tables import Lease, Run
from tests.harness.agent import Training
from tests.harness.story import told
from tests.harness.world import World

RUN = "/benchmark resnet50"


async def _fork(world: World) -> None:
    fork = await world.sandbox.fork(world.repository, "sam")
    await world.sandbox.push(fork, "sam", "faster", {"train.py": b"print('from a fork')\n"})
    sam = world.sandbox.add_account("sam")
    world.pull = await world.sandbox.acts.open_pull(
        world.repository, sam, "A model", "Train it.", head=(fork, "faster")
    )
    await world.settle()


@told
async def test_w09_w10_a_deleted_fork_is_a_strangers(world: World) -> None:
    """The head repository is gone: no crash, least trust, and the recorded commit can still be run."""
    await _fork(world)
    world.pull.head_repository = None
    await world.says("maya", RUN)
    (reply,) = world.read()
    assert "fork" in reply
    assert f"sha={world.pull.head_sha}" in reply
    await world.reviews("tom", "APPROVE")
    assert await world.requests() == []
    await world.says("maya", f"{RUN} sha={world.pull.head_sha}")
    assert "no change" in world.read()[0]
    # GitHub does answer null for a fork that was deleted, although its description knows only objects
    assert {sentence.partition(" ")[2] for sentence in world.violations} == {
        '/repos/{owner}/{repo}/pulls/{pull_number} -> 200 head/repo: null is not of type "object"'
    }
    world.violations.clear()


@told
async def test_w14_rerun_of_a_whole_suite(world: World) -> None:
    """GitHub's "re-run all" names only the commit: found in our own rows, and only for people who may run."""
    await world.says("maya", f"{RUN} pairs=1")
    world.read()
    (check,) = world.repository.checks
    suite = {
        "id": check.suite_id,
        "head_sha": check.head_sha,
        "head_branch": None,
        "pull_requests": [],
        "app": {"id": world.land.app.id},
    }

    async def asked(who: str, app_id: int) -> None:
        await world.hook("check_suite", who, action="rerequested", check_suite={**suite, "app": {"id": app_id}})

    await asked("sam", world.land.app.id)
    await asked("maya", 29310)
    assert len(await world.requests()) == 1
    await asked("maya", world.land.app.id)
    first, second = await world.requests()
    assert second.head_sha == first.head_sha
    assert second.requester == "maya"
    world.read()


@told
async def test_w16_bots_and_readers_may_press_approve(world: World) -> None:
    """Anybody may review a public pull request; the right is asked from GitHub, and bots start nothing."""
    await world.reviews("sam", "APPROVE")
    bot = world.sandbox.add_account("reviewer[bot]", "Bot")
    world.sandbox.permit(world.repository, bot.login, "write")
    world.sandbox.acts.review(world.repository, world.pull.number, bot, "APPROVE", "")
    await world.settle()
    assert await world.requests() == []


@told
async def test_w17_a_push_between_approval_and_look(world: World) -> None:
    """The review names a commit that is no longer the head: nothing runs on the new one."""
    maya = world.sandbox.add_account("maya")
    world.sandbox.acts.review(world.repository, world.pull.number, maya, "APPROVE", "")
    (delivery,) = world.sandbox.hooks.waiting
    await world.sandbox.hooks.send(world.session, delivery)
    await world.pushes("ada")
    await world.settle()
    assert await world.requests() == []


@told
async def test_c03_line_ends_of_the_web(world: World) -> None:
    """GitHub sends CR LF; names do not keep the CR, and several lines are several requests."""
    await world.says("maya", "/benchmark resnet50 pairs=1\r\n/benchmark bert pairs=1\r\n")
    assert {request.command for request in await world.requests()} == {
        "/benchmark resnet50 pairs=1",
        "/benchmark bert pairs=1",
    }
    world.read()


@told
async def test_c05_a_faulty_word_stops_the_whole_line(world: World) -> None:
    """Nothing is started of a line that is only partly understood."""
    await world.says("maya", "/benchmark resnt50 --seeds 3")
    await world.says("maya", "/benchmark resnet50 --seeds three")
    near, number = world.read()
    assert "resnet50" in near
    assert "three" in number
    assert await world.requests() == []


@told
async def test_c09_what_phones_make_of_it(world: World) -> None:
    """Long dashes and blanks that are none: read as meant, or refused; never other parameters than shown."""
    await world.says("maya", "/benchmark resnet50 —seeds 2")
    await world.says("maya", "/benchmark\u00a0resnet50\u00a0pairs=1")
    await world.says("maya", '/benchmark resnet50 --scenario "open')
    first, second = await world.requests()
    assert json.loads(first.call)["command"]["options"] == {"seeds": "2"}
    assert json.loads(second.call)["command"]["options"] == {"pairs": "1"}
    assert any("quote" in body for body in world.read())


@told
async def test_c13_the_recorded_commit_runs_not_the_new_head(world: World) -> None:
    """Waiting in the queue while the branch is rewritten: the agent still gets the commit that was asked for."""
    world.hold_agents = True
    asked = world.pull.head_sha
    await world.says("maya", RUN)
    await world.pushes("ada")
    await world.settle()
    agent = await world.agent()
    await agent.claim()
    assert agent.work["sides"]["head"]["source"]["commit"] == asked
    world.hold_agents = False
    await agent.run()
    await world.settle()
    assert asked[:7] in world.read()[0]


@told
async def test_c13_a_commit_that_is_not_available_any_more(world: World) -> None:
    """The old commit cannot be fetched: said so, and not replaced by another."""
    gone = Training(reason="checkout_failed", sentence="The commit is not available any more.")
    world.script = lambda commit, seed: gone if commit == world.pull.head_sha else Training()
    await world.says("maya", RUN)
    assert "not available any more" in world.read()[0]


@told
async def test_c14_edits_by_others_and_deletions(world: World) -> None:
    """Only the author's own edit counts; deleting the comment while it runs does no harm."""
    said = await world.says("tom", "looks good")
    maya = world.sandbox.add_account("maya")
    world.sandbox.acts.edit(world.repository, world.pull, said, maya, RUN)
    await world.settle()
    assert await world.requests() == []
    world.hold_agents = True
    said = await world.says("maya", RUN)
    world.sandbox.acts.delete(world.repository, world.pull, said, maya)
    world.hold_agents = False
    await world.settle()
    assert "no change" in world.read()[0]


@told
async def test_o11_a_planted_marker_is_nobodys(world: World) -> None:
    """An outsider copies the hidden marker before the bot writes its own comment: it is neither edited nor trusted."""
    world.hold_agents = True
    world.sandbox.hub.faults.append(Fault(method="POST", path=r"/issues/\d+/comments$", status=502))
    await world.comment("maya", RUN)
    await world.work()
    (request,) = await world.requests()
    planted = await world.comment("sam", f"<!-- benchbot:{request.id}:results -->\nAll green, trust me.")
    world.hold_agents = False
    await world.settle()
    assert planted.body.endswith("All green, trust me.")
    assert "no change" in world.read()[0]


@told
async def test_o12_deleted_comments_and_locked_threads(world: World) -> None:
    """A deleted comment is written anew, once; in a locked conversation only the check run speaks."""
    world.hold_agents = True
    await world.says("maya", RUN)
    (mine,) = [comment for comment in world.pull.comments if comment.author is world.land.app.bot]
    world.pull.comments.remove(mine)
    world.hold_agents = False
    await world.settle()
    assert len([body for body in world.read() if "no change" in body]) == 1
    world.pull.locked = True
    world.sandbox.hub.faults.append(Fault(method="POST", path=r"/issues/\d+/comments$", status=403, times=100))
    maya = world.sandbox.add_account("maya")
    world.sandbox.acts.comment(world.repository, world.pull.number, maya, "/benchmark smoke")
    await world.settle()
    assert world.checks()["benchbot / smoke"] == ("completed", "success")
    tries = [call for call in world.sandbox.hub.calls if call[0] == "POST" and call[2] == 403]
    assert len(tries) < 5


@told
async def test_s05_three_benchmarks_of_which_two_give_nothing(world: World) -> None:
    """All three stand in the comment, and the whole is no success."""

    def script(commit: str, seed: int) -> Training:
        return Training(values={"validation/accuracy": 90.0, "train/seconds_per_step": 0.1})

    world.script = script
    world.hold_agents = True
    await world.says("maya", "/benchmark all pairs=1")
    async with world.services.database.read() as tx:
        leases = (await tx.scalars(select(Lease).order_by(Lease.position))).all()
        runs = {lease.id: (await tx.scalars(select(Run).where(Run.lease_id == lease.id))).all() for lease in leases}
    assert len(leases) == 3
    failing = {run.id for run in runs[leases[1].id]}
    empty = {run.id for run in runs[leases[0].id]}
    world.script = script
    world.by_run = lambda run_id, training: (
        replace(training, reason="user_error", sentence="The script ended with exit status 1.", exit=1)
        if run_id in failing
        else replace(training, values={})
        if run_id in empty
        else training
    )
    world.hold_agents = False
    await world.settle()
    results, *_ = world.read()
    for name in ("resnet50", "bert", "smoke"):
        assert f"`{name}`" in results
    assert "failed" in results
    assert "not measured" in results
    assert world.checks()["benchbot / all"] == ("completed", "failure")


@told
async def test_a_pull_request_that_edits_the_configuration_is_told_its_faults(world: World) -> None:
    """A check run with annotations, every fault at its line; the base's file stays the one that counts."""
    bad = b"version: 1\nbenchmarks:\n  resnet50:\n    rum: python train.py\n    timeout: 90\n"
    await world.pushes("ada", {".github/benchmark.yml": bad})
    await world.settle()
    (check,) = [each for each in world.repository.checks if each.head_sha == world.pull.head_sha]
    assert check.fields["conclusion"] == "failure"
    assert {note["start_line"] for note in check.annotations} >= {4, 5}
    await world.says("maya", RUN)
    assert "no change" in world.read()[0]


@told
async def test_what_only_the_head_has_is_new(world: World) -> None:
    """A contributed model's entry: run on the head alone with `config=head`, shown, compared with nothing."""
    both = await bare.blob(world.repository.folder, world.pull.base_sha, ".github/benchmark.yml")
    entry = b"  vit:\n    run: python train.py --model vit\n    metrics:\n      accuracy: {tag: validation/accuracy}\n"
    config = both[1].replace(b"  smoke:\n", entry + b"  smoke:\n")
    await world.pushes("ada", {".github/benchmark.yml": config})
    await world.settle()
    await world.says("maya", "/benchmark vit")
    await world.says("maya", "/benchmark vit config=head")
    unknown, results, *_ = world.read()
    assert "vit" in unknown
    assert "new" in results
    assert world.checks()["benchbot / vit"] == ("completed", "neutral")


@told
async def test_a_base_without_configuration(world: World) -> None:
    """No file at all: the reply says what to do, also for a pull request that adds the first one."""
    folder, identity = world.repository.folder, ("-c", "user.name=maya", "-c", "user.email=maya@localhost")
    tree = (await bare.git(folder, "mktree")).decode().strip()
    empty = await bare.git(folder, *identity, "commit-tree", tree, "-m", "Empty", "-p", "main")
    await bare.git(world.repository.folder, "update-ref", "refs/heads/main", empty.decode().strip())
    await world.says("maya", RUN)
    (reply,) = world.read()
    assert "benchmark.yml" in reply
    assert "config=head" in reply
    await world.says("maya", "/benchmark resnet50 config=head")
    assert "new" in world.read()[0]


@told
async def test_the_same_delivery_twice_is_one(world: World) -> None:
    """GitHub, a person or a second hook sends it again: one request, one answer."""
    await world.comment("maya", RUN)
    (delivery,) = world.sandbox.hooks.waiting
    await world.sandbox.hooks.send(world.session, delivery)
    await world.settle()
    world.sandbox.hooks.again(delivery)
    world.sandbox.hooks.again(replace(delivery, guid="another-hook"))
    await world.settle()
    assert len(await world.requests()) == 1
    assert len(world.read()) == 1


@told
async def test_a_renamed_repository_is_the_same_one(world: World) -> None:
    """Renamed while it runs: everything goes on by its id, and the answer lands where the pull request is."""
    world.hold_agents = True
    await world.says("maya", RUN)
    world.repository.name = "sight"
    await world.hook("repository", "maya", action="renamed", changes={"repository": {"name": {"from": "vision"}}})
    world.hold_agents = False
    await world.settle()
    assert "no change" in world.read()[0]


@told
async def test_over_the_budget(world: World) -> None:
    """More than one request may cost: refused before anything starts."""
    local = replace(world.services.settings.hardware["local"], price_usd_per_hour=4.0)
    world.settings = replace(world.services.settings, hardware={"local": local}, limits=Limits(budget_usd=10.0))
    await world.close_bot()
    await world.open_bot()
    await world.says("maya", RUN)
    await world.says("maya", f"{RUN} timeout=10m budget=1usd")
    await world.says("maya", f"{RUN} timeout=10m")
    first, second, results, *_ = world.read()
    assert "23.00 USD" in first
    assert "1.00 USD" in second
    assert "no change" in results
    assert len(world.cloud.created) == 1


@told
async def test_training_scripts_from_a_second_repository(world: World) -> None:
    """`scripts:` names a tree of its own: pinned when asked, the same for both sides, and within the agent's reach."""
    folder = world.repository.folder.parent / "scripts.git"
    await bare.git(folder, "clone", "--quiet", "--bare", str(world.repository.folder), str(folder))
    scripts = world.sandbox.add_repository("acme/scripts", folder)
    tip = await bare.resolve(folder, "main")
    old = (await bare.blob(world.repository.folder, "main", ".github/benchmark.yml"))[1]
    config = old.replace(b"benchmarks:", b"scripts: {repository: acme/scripts, ref: main}\nbenchmarks:", 1)
    await world.sandbox.push(world.repository, "maya", "main", {".github/benchmark.yml": config})
    world.hold_agents = True
    await world.says("maya", f"{RUN} pairs=1")
    await world.sandbox.push(scripts, "maya", "main", {"later.py": b"\n"})
    agent = await world.agent()
    await agent.claim()
    sides = agent.work["sides"]
    assert sides["head"]["scripts"]["commit"] == sides["base"]["scripts"]["commit"] == tip
    url = sides["head"]["scripts"]["url"] + "/info/refs?service=git-upload-pack"
    async with world.session.get(url, headers={"Authorization": f"Bearer {agent.credential}"}) as answer:
        assert answer.status == 200
        assert b"refs/heads/main" in await answer.read()
    world.hold_agents = False
    await agent.run()
    await world.settle()
    world.read()
