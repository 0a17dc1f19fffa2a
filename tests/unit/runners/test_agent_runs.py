"""One training command under the real agent: how it may end, and what it may print and leave behind."""

import os
import sys

import pytest

from runners.agent import shipping
from runners.agent.commands import Ended
from runners.agent.training import judge
from tests.unit.runners.conftest import Scene


async def _one(scene: Scene, command: str, **more: object) -> dict[str, object]:
    scene.plan(scene.run("r1", command, **more))
    await scene.finish()
    return scene.server.ended()["r1"]


async def test_a_command_that_fails_shows_its_last_thirty_lines(scene: Scene) -> None:
    ended = await _one(scene, "seq 100; exit 5")
    assert (ended["reason"], ended["exit"]) == ("user_error", 5)
    assert ended["log_tail"] == "\n".join(str(number) for number in range(71, 101))


async def test_a_placeholder_that_nobody_fills_in_is_the_commands_fault(scene: Scene) -> None:
    ended = await _one(scene, "echo {what}")
    assert (ended["reason"], ended["exit"]) == ("user_error", None)
    assert "{what}" in str(ended["sentence"])


async def test_a_command_that_takes_too_long_is_ended(scene: Scene) -> None:
    ended = await _one(scene, "echo begun; trap '' TERM; sleep 1000 & wait; sleep 1000", timeout_s=0.5)
    assert (ended["reason"], ended["exit"]) == ("timeout", 137)
    assert scene.server.text("r1", "log.txt").startswith("begun\n")
    assert scene.left_running() == []


async def test_want_of_memory_is_told_apart(scene: Scene) -> None:
    ended = await _one(scene, f"ulimit -v 400000; {sys.executable} -c 'bytes(10**10)'")
    assert ended["reason"] == "oom"


@pytest.mark.parametrize(
    ("exit_status", "tail", "killed", "reason"),
    [
        (137, "", True, "oom"),
        (137, "", False, "user_error"),
        (1, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", False, "oom"),
        (1, "RuntimeError: CUDA out of memory", False, "oom"),
        (1, "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: while allocating", False, "oom"),
        (1, "ValueError: bad shape", True, "user_error"),
        (139, "", False, "user_error"),
        (0, "caught a MemoryError, went on", True, ""),
    ],
)
def test_reasons(exit_status: int, tail: str, killed: bool, reason: str) -> None:
    assert judge(Ended(exit_status, 1.0, 0, ""), tail, killed, 60.0)[0] == reason


async def test_a_daemon_is_ended_with_its_run(scene: Scene) -> None:
    daemon = """python - <<'END'
import os, time
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.chdir("/")
os.environ.clear()
open(os.path.join("%s", "pid"), "w").write(str(os.getpid()))
time.sleep(1000)
END
until [ -s %s/pid ]; do sleep 0.01; done"""
    place = str(scene.folder)
    ended = await _one(scene, daemon % (place, place))
    assert ended["reason"] == ""
    pid = int((scene.folder / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert scene.server.text("r1", "log.txt") == "[benchbot] 1 processes that the command left behind were ended\n"


async def test_sixty_megabytes_of_progress_bar_stay_small(scene: Scene) -> None:
    flood = r"""python -c "
import sys
bar = b'\r 12%|##| 12/100' * 65536
for _ in range(60):
    sys.stdout.buffer.write(bar)
sys.stdout.buffer.write(b'\r100%|##########| 100/100\n' + b'x' * 5000000)
" """
    ended = await _one(scene, flood)
    assert ended["reason"] == ""
    first, second = scene.server.text("r1", "log.txt").splitlines()
    assert first == "100%|##########| 100/100"
    assert second == "x" * 8192 + " …[line cut]"


async def test_bytes_that_are_not_text_do_not_stop_the_log(scene: Scene) -> None:
    await _one(
        scene, r"printf 'ok \227\377\nnul\000 \360\237'; sleep 0.1; printf '\230\200 \033[31mred\033[0m\nacc=1\n'"
    )
    assert scene.server.text("r1", "log.txt") == "ok ��\nnul 😀 red\nacc=1\n"


async def test_links_and_devices_are_left_out_with_a_note(scene: Scene) -> None:
    secret = scene.folder / "secret"
    secret.write_text("bot's own")
    script = f"""cd $BENCHBOT_LOGDIR; echo fine > good.csv; ln -s {secret} stolen.txt; ln -s {scene.folder} folder
    mkfifo pipe; cd ../checkpoints; ln -s {secret} w.bin; rm -r ../logs/none 2>/dev/null; touch $'new\\nline'; true"""
    await _one(scene, script)
    paths = {path for run, path in scene.server.files if run == "r1"}
    assert paths == {"log.txt", "logs/good.csv"}
    log = scene.server.text("r1", "log.txt")
    for name in ("stolen.txt", "folder", "pipe", "w.bin", "new?line"):
        assert f"{name} was left out" in log


async def test_a_folder_swapped_for_a_link_ships_nothing(scene: Scene) -> None:
    (scene.folder / "secrets").mkdir()
    (scene.folder / "secrets" / "key").write_text("bot's own")
    await _one(scene, f"rm -r $BENCHBOT_LOGDIR; ln -s {scene.folder}/secrets $BENCHBOT_LOGDIR")
    assert {path for run, path in scene.server.files} == {"log.txt"}


async def test_a_file_that_is_rewritten_is_sent_anew(scene: Scene) -> None:
    go = scene.folder / "go"
    script = f"""echo 0123456789 > $BENCHBOT_LOGDIR/a; echo same-size > $BENCHBOT_LOGDIR/b
    until [ -e {go} ]; do sleep 0.02; done; echo short > $BENCHBOT_LOGDIR/a; echo SAME-SIZE > $BENCHBOT_LOGDIR/b"""
    scene.plan(scene.run("r1", script))
    agent = await scene.agent()
    await scene.server.until(lambda: {("r1", "logs/a"), ("r1", "logs/b")} <= scene.server.files.keys())
    go.touch()
    await agent.communicate()
    assert scene.server.text("r1", "logs/a") == "short\n"
    assert scene.server.text("r1", "logs/b") == "SAME-SIZE\n"


async def test_more_files_than_are_kept(scene: Scene) -> None:
    most = shipping.MOST_FILES
    await _one(scene, f"cd $BENCHBOT_LOGDIR; seq {most + 5} | xargs touch")
    assert sum(path.startswith("logs/") for _, path in scene.server.files) == most
    assert f"at most {most} files" in scene.server.text("r1", "log.txt")
