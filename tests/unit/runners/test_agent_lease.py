"""The real agent against a bot in memory: a lease from claim to finish, and what may go wrong on the way."""

import asyncio
import hashlib
import sys
from pathlib import Path

from runners import protocol
from tests.harness.agent_server import CREDENTIAL, TOKEN
from tests.unit.runners.conftest import Scene

INSTALL = "pip install --no-build-isolation --no-deps -e ."
SHOW = """python - <<'END'
import digits, os, pathlib
print("side", digits.SIDE, "seed", os.environ["BENCHBOT_SEED"])
pathlib.Path(os.environ["BENCHBOT_LOGDIR"], "sub").mkdir()
pathlib.Path(os.environ["BENCHBOT_LOGDIR"], "sub", "metrics.jsonl").write_text('{{"step": 1}}\\n')
pathlib.Path(os.environ["BENCHBOT_CHECKPOINTS"], "last.bin").write_bytes(bytes(300000))
END"""


def _seeded(scene: Scene, name: str, side: str) -> dict[str, object]:
    return scene.run(name, SHOW, side, env={"BENCHBOT_SEED": "7"})


async def test_both_sides_run_in_order_and_each_imports_its_own_code(scene: Scene) -> None:
    order = [("r1", "head"), ("r2", "base"), ("r3", "base"), ("r4", "head")]
    count = scene.folder / "setups"
    setup = f"{INSTALL} && echo x >> {count}"
    scene.plan(*(_seeded(scene, *one) for one in order), setup=setup, setup_inputs=["pyproject.toml"])

    await scene.finish("--base-environment", sys.prefix)

    server = scene.server
    assert server.finished == {"outcome": "done", "sentence": ""}
    ended = server.ended()
    assert [event["run"] for event in server.events if event["kind"] == "run_ended"] == ["r1", "r2", "r3", "r4"]
    for name, side in order:
        commit = {"head": scene.head, "base": scene.base}[side]
        assert server.text(name, "log.txt") == f"side {side} seed 7\n"
        assert ended[name]["imported"] == f"digits from src/digits at {commit}"
        assert (ended[name]["exit"], ended[name]["reason"]) == (0, "")
        assert ended[name]["peak_rss_bytes"] > 1_000_000
        assert server.text(name, "logs/sub/metrics.jsonl") == '{"step": 1}\n'
        assert server.files[name, "checkpoints/last.bin"] == bytes(300000)
        assert set(server.manifests[name]) == {"log.txt", "logs/sub/metrics.jsonl", "checkpoints/last.bin"}
    assert not (scene.folder / "lease").exists()
    assert scene.left_running() == []
    # once for the shared dependencies, once for each side
    assert count.read_text() == "x\n" * 3

    scene.plan(_seeded(scene, "r2", "base"), setup=setup, setup_inputs=["pyproject.toml"])
    await scene.finish("--base-environment", sys.prefix)
    assert count.read_text() == "x\n" * 5, "the cached dependencies were not found again"
    assert server.text("r2", "log.txt") == "side base seed 7\n"


async def test_a_project_that_is_installed_as_a_copy_is_its_sides_own(scene: Scene) -> None:
    setup = "pip install --no-build-isolation --no-deps ."
    scene.plan(_seeded(scene, "r1", "head"), _seeded(scene, "r2", "base"), setup=setup)
    await scene.finish("--base-environment", sys.prefix)
    assert scene.server.text("r1", "log.txt") == "side head seed 7\n"
    assert scene.server.text("r2", "log.txt") == "side base seed 7\n"
    imported = scene.server.ended()["r1"]["imported"]
    assert imported == f"digits from site-packages, built from the checkout at {scene.head}"


async def test_code_that_is_not_the_sides_own_fails_its_setup(scene: Scene) -> None:
    # the setup line puts a copy of the module in front of what it installs
    elsewhere = scene.folder / "elsewhere"
    (elsewhere / "digits").mkdir(parents=True)
    (elsewhere / "digits" / "__init__.py").write_text("SIDE = 'other'\n")
    line = f"import sys; sys.path.insert(0, '{elsewhere}')"
    (scene.folder / "trick.py").write_text(
        f"import sysconfig\nopen(sysconfig.get_path('purelib') + '/a.pth', 'w').write({line!r})\n"
    )
    trick = f"python {scene.folder / 'trick.py'}"
    scene.plan(_seeded(scene, "r1", "head"), setup=f"{INSTALL} && {trick}")
    await scene.finish("--base-environment", sys.prefix)
    ended = scene.server.ended()["r1"]
    assert ended["reason"] == "setup_failed"
    assert "not from the checkout" in ended["sentence"]


async def test_a_lease_is_claimed_with_an_identity_where_there_is_no_token(scene: Scene) -> None:
    scene.server.proof = "identity"
    scene.plan()
    await scene.finish()
    assert scene.server.finished == {"outcome": "done", "sentence": ""}


async def test_lost_answers_busy_bots_and_lost_bytes_do_no_harm(scene: Scene) -> None:
    scene.server.faults.lost_claims = 1
    scene.server.faults.busy.update(dict.fromkeys(("event", "put", "manifest", "finish", "heartbeat"), 2))
    big = "head -c 3000000 /dev/urandom > $BENCHBOT_CHECKPOINTS/w.bin"
    scene.server.faults.forget.add("checkpoints/w.bin")
    scene.plan(scene.run("r1", f"echo fine; {big}"))
    await scene.finish()
    assert len(set(scene.server.nonces)) == 1
    assert len(scene.server.nonces) == 2
    assert scene.server.finished == {"outcome": "done", "sentence": ""}
    kept = scene.server.files["r1", "checkpoints/w.bin"]
    assert hashlib.sha256(kept).hexdigest() == scene.server.manifests["r1"]["checkpoints/w.bin"]
    assert len(kept) == 3_000_000


async def test_a_bot_that_restarts_gets_everything(scene: Scene) -> None:
    go = scene.folder / "go"
    scene.plan(scene.run("r1", f"until [ -e {go} ]; do sleep 0.02; done; echo after"), scene.run("r2", "echo two"))
    agent = await scene.agent()
    await scene.server.until(lambda: any(event["kind"] == "run_started" for event in scene.server.events))
    await scene.server.stop()
    go.touch()
    await scene.server.start()
    await asyncio.wait_for(agent.communicate(), 60)
    assert scene.server.text("r1", "log.txt") == "after\n"
    assert scene.server.text("r2", "log.txt") == "two\n"
    assert [event["run"] for event in scene.server.events if event["kind"] == "run_ended"] == ["r1", "r2"]


async def test_another_agent_with_the_same_token_is_refused(scene: Scene) -> None:
    scene.plan(scene.run("r1", "echo never"))
    scene.server.nonces.append("somebody else's")
    said = await scene.finish()
    assert scene.agents[0].returncode == 3
    assert "403" in said
    assert scene.server.events == []
    assert not (scene.folder / "lease").exists()


async def test_an_agent_that_died_goes_on_where_it_was(scene: Scene) -> None:
    scene.plan(scene.run("r1", "echo one"), scene.run("r2", "[ -e ../../../go ] || sleep 1000; echo two"))
    agent = await scene.agent()
    await scene.server.until(lambda: sum(event["kind"] == "run_started" for event in scene.server.events) == 2)
    agent.kill()
    await agent.wait()
    (scene.folder / "lease" / "go").touch()
    await scene.finish()
    started = [event["run"] for event in scene.server.events if event["kind"] == "run_started"]
    # an event whose answer was lost with the agent is sent once more: at least once, never less
    assert started in (["r1", "r2", "r2"], ["r1", "r2", "r2", "r2"])
    assert len(set(scene.server.nonces)) == 1
    assert scene.server.text("r2", "log.txt") == "two\n"
    assert scene.server.finished == {"outcome": "done", "sentence": ""}


async def test_cancel_ends_the_run_and_all_its_processes_and_ships_what_is_there(scene: Scene) -> None:
    script = "echo begun; echo 1 > $BENCHBOT_LOGDIR/a.csv; setsid sleep 1000 & trap '' TERM; sleep 1000 & wait; wait"
    scene.plan(scene.run("r1", script), scene.run("r2", "echo never"))
    agent = await scene.agent()
    await scene.server.until(lambda: ("r1", "logs/a.csv") in scene.server.files)
    scene.server.faults.stop = "cancelled by octocat"
    await asyncio.wait_for(agent.communicate(), 60)
    ended = scene.server.ended()
    assert ended["r1"]["reason"] == ended["r2"]["reason"] == "cancelled"
    assert "octocat" in ended["r1"]["sentence"]
    assert ended["r2"]["exit"] is None
    assert scene.server.text("r1", "log.txt").startswith("begun\n")
    assert scene.server.text("r1", "logs/a.csv") == "1\n"
    assert scene.server.finished == {"outcome": "cancelled", "sentence": "cancelled by octocat"}
    assert scene.left_running() == []


async def test_a_lease_that_the_bot_has_forgotten_ends_at_once(scene: Scene) -> None:
    scene.plan(scene.run("r1", "sleep 1000"))
    agent = await scene.agent()
    await scene.server.until(lambda: any(event["kind"] == "run_started" for event in scene.server.events))
    scene.server.faults.gone = True
    assert await asyncio.wait_for(agent.wait(), 60) == 3
    assert scene.left_running() == []
    assert not (scene.folder / "lease").exists()


async def test_the_deadline_ends_everything_even_without_a_bot(scene: Scene) -> None:
    scene.plan(scene.run("r1", "sleep 1000"))
    agent = await scene.agent("--grace-s", "0")
    await scene.server.until(lambda: any(event["kind"] == "run_started" for event in scene.server.events))
    scene.server.deadline_at = 1.0
    before = len(scene.server.heartbeats)
    await scene.server.until(lambda: len(scene.server.heartbeats) > before)
    await scene.server.stop()
    assert await asyncio.wait_for(agent.wait(), 60) == 4
    assert scene.left_running() == []
    assert not (scene.folder / "lease").exists()


async def test_a_commit_that_is_not_there_fails_only_its_own_side(scene: Scene) -> None:
    scene.head = "0123456789" * 4
    scene.plan(scene.run("r1", "true"), scene.run("r2", "echo fine", "base"))
    await scene.finish()
    ended = scene.server.ended()
    assert ended["r1"]["reason"] == "checkout_failed"
    assert ended["r1"]["sentence"].startswith("commit not available: 012345678901")
    assert ended["r2"]["reason"] == ""


async def test_a_failing_setup_shows_its_log(scene: Scene) -> None:
    scene.plan(scene.run("r1", "true"), setup="echo collecting; echo no such thing >&2; exit 9")
    await scene.finish()
    ended = scene.server.ended()["r1"]
    assert (ended["reason"], ended["exit"]) == ("setup_failed", None)
    assert ended["sentence"] == "setup ended with status 9: no such thing"
    assert scene.server.text("r1", "log.txt") == "collecting\nno such thing\n"


async def test_a_python_that_is_not_there_is_said_with_those_that_are(scene: Scene) -> None:
    scene.plan(scene.run("r1", "true"), python="3.99")
    await scene.finish()
    ended = scene.server.ended()["r1"]
    assert ended["reason"] == "setup_failed"
    assert ended["sentence"].startswith("Python 3.99 is not on this machine; there is: 3.")


async def test_source_over_http_gets_the_credential_and_the_code_does_not(scene: Scene) -> None:
    scene.server.repositories["7.git"] = scene.repository.folder
    scene.server.faults.busy["source"] = 1
    scene.plan(scene.run("r1", "cat .git/config; env; grep -rl credential-of . || echo clean"))
    url = f"{scene.server.url}{protocol.PREFIX}/source/7.git"
    scene.server.work["sides"]["head"]["source"]["url"] = url  # type: ignore[index] # it is the dict of plan()
    await scene.finish()
    assert set(scene.server.fetch_headers) == {f"Bearer {CREDENTIAL}"}
    log = scene.server.text("r1", "log.txt")
    assert scene.server.ended()["r1"]["reason"] == ""
    assert log.endswith("clean\n")
    assert "extraheader" not in log.lower()
    assert TOKEN not in log


async def test_inputs_are_fetched_once_and_checked(scene: Scene) -> None:
    digest = hashlib.sha256(b"seven").hexdigest()
    good = {"name": "data-set", "url": f"{scene.server.url}/inputs/seven", "sha256": digest}
    command = "cat {inputs.data-set} $BENCHBOT_INPUT_DATA_SET {args}"
    run = scene.run("r1", command, raw={"args": "{inputs.data-set}"})
    scene.plan(run, inputs=[good])
    await scene.finish()
    assert scene.server.text("r1", "log.txt") == "seven" * 3 + "\n"
    kept = list((scene.folder / "cache" / "inputs").glob("*/seven"))
    assert [path.parent.name for path in kept] == [digest]

    scene.plan(scene.run("r1", "true"), inputs=[{**good, "sha256": "0" * 64}])
    await scene.finish()
    ended = scene.server.ended()["r1"]
    assert ended["reason"] == "input_failed"
    assert digest in ended["sentence"]


async def test_a_second_tree_with_scripts_lies_beside_the_checkout(scene: Scene) -> None:
    commit = scene.repository.commit({"train.py": "import os, sys; print('from scripts', sys.argv[1])\n"})
    scene.plan(scene.run("r1", 'ls; python "$BENCHBOT_SCRIPTS/train.py" {seed}', words={"seed": "3"}))
    source = {"url": str(scene.repository.folder), "commit": commit}
    scene.server.work["sides"]["head"]["scripts"] = source  # type: ignore[index] # it is the dict of plan()
    await scene.finish()
    assert scene.server.text("r1", "log.txt") == "pyproject.toml\nsrc\nfrom scripts 3\n"


async def test_the_code_gets_a_clean_environment_that_does_not_tell_its_side(scene: Scene, tmp_path: Path) -> None:
    extra = tmp_path / "more.json"
    extra.write_text('{"OMP_NUM_THREADS": "1"}')
    command = "env -0 | tr '\\0' '\\n' | sort; pwd; ls -a ~"
    scene.plan(scene.run("r1", command), scene.run("r2", command, "base"))
    await scene.finish("--environment-file", str(extra))
    log = scene.server.text("r1", "log.txt")
    names = {line.partition("=")[0] for line in log.splitlines() if "=" in line}
    theirs = {"BENCHBOT_LOGDIR", "BENCHBOT_CHECKPOINTS", "OMP_NUM_THREADS"}
    ours = {"HOME", "TMPDIR", "LANG", "USER", "LOGNAME", "PATH", "PYTHONUNBUFFERED", "VIRTUAL_ENV"}
    assert names == theirs | ours | {"PWD", "SHLVL", "_"}
    for side in ("head", "base"):
        assert side not in log.replace(str(tmp_path), "")
    other = scene.server.text("r2", "log.txt")
    assert [len(line) for line in log.splitlines()] == [len(line) for line in other.splitlines()]


async def test_runs_that_are_not_wanted_any_more_are_left_out(scene: Scene) -> None:
    """It waits for the answer, and after the first no it asks no more; whatever it has done is shipped."""
    runs = [
        {**scene.run(name, "echo $BENCHBOT_SIDE", "head"), "asks": name != "r1"} for name in ("r1", "r2", "r3", "r4")
    ]
    scene.server.wanted = {"r2": [{"later": True}, {"wanted": True}], "r3": [{"later": True}, {"wanted": False}]}
    scene.plan(*runs)
    await scene.finish("--base-environment", sys.prefix)
    assert sorted(scene.server.ended()) == ["r1", "r2"]
    assert sorted(scene.server.manifests) == ["r1", "r2"]
    assert scene.server.finished == {"outcome": "done", "sentence": ""}
    assert scene.server.wanted == {"r2": [], "r3": []}


async def test_a_bot_that_cannot_tell_whether_a_run_is_wanted_gets_it(scene: Scene) -> None:
    """An older bot does not know the question."""
    scene.plan({**scene.run("r1", "true", "head"), "asks": True})
    await scene.finish("--base-environment", sys.prefix)
    assert sorted(scene.server.ended()) == ["r1"]
