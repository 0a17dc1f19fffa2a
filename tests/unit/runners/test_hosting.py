"""A host's loop, without a bot: what it refuses, what it keeps, and what it finds after a restart."""

import json
import os
import stat
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.agent import devices, hosting, processes, users
from runners.agent.devices import Device
from runners.agent.hosting import EXIT_REFUSED, is_meant, serve
from runners.agent.link import LeaseOverError, RefusedError, SilentError
from runners.agent.tenant import Tenant

# what runs goes on when the loop ends: that is the point
pytestmark = pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")

L4 = Device("nvidia", "NVIDIA L4", 23034)
ORDER = {
    "server": "http://127.0.0.1:9",
    "lease": "L1",
    "token": "token-1",
    "deadline_at": 0.0,
    "trusted": True,
    "environment": {},
    "base_environment": "",
    "devices": 1,
}
# what stands in for the agent's bundle: a program that leaves its folder behind and goes on
SLEEPER = b"""
import os, sys, time
folder = sys.argv[sys.argv.index("--folder") + 1]
os.makedirs(folder)
print("here", flush=True)
time.sleep(600)
"""


class Bot:
    """Answers in turn; remembers what it was told. `refusal` is raised instead."""

    def __init__(self, stop: threading.Event, *answers: Mapping[str, Any]) -> None:
        self.stop, self.answers = stop, list(answers)
        self.refusal: Exception | None = None
        self.heard: list[tuple[str, Any]] = []
        self.credential = ""

    def post(self, path: str, message: Mapping[str, Any], patience_s: float) -> Mapping[str, Any]:
        self.heard.append((path, message))
        if self.refusal:
            raise self.refusal
        if path == "hosts/enrol":
            return {"name": "box-1"}
        if len(self.answers) == 1:
            self.stop.set()
        return self.answers.pop(0)


NOTHING = {"order": "", "start": None, "poll_s": 0.0}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A host's folder. Folders above it are taken to be open, and this computer to have one GPU."""
    monkeypatch.setattr(devices, "probe", lambda: [L4])
    monkeypatch.setattr(hosting.stat, "S_IXOTH", stat.S_IXUSR)
    monkeypatch.setattr(hosting.signal, "signal", lambda *_: None)
    yield tmp_path / "host"
    for pid in processes.working_in(tmp_path):
        processes.send(pid, 9)


@pytest.fixture
def bot(monkeypatch: pytest.MonkeyPatch) -> Bot:
    made = Bot(threading.Event())
    monkeypatch.setattr(hosting, "Link", lambda _, stop: _with(made, stop))
    monkeypatch.setattr(hosting._Loop, "_fetch", lambda *_: SLEEPER)
    return made


def _with(bot: Bot, stop: threading.Event) -> Bot:
    bot.stop = stop
    return bot


def wants(folder: Path, bot: Bot, *answers: Mapping[str, Any], code: str = "code-1", labels: str | None = "l4") -> int:
    """Be a host for as many rounds as there are answers."""
    bot.answers = list(answers) or [NOTHING]
    return serve(Namespace(enrol="http://127.0.0.1:9", code=code, labels=labels, folder=folder))


def begins(name: str = "bb-main-one-0", **more: Any) -> dict[str, Any]:
    """An answer that begins an order."""
    return {"order": name, "start": {**ORDER, "deadline_at": time.time() + 600, **more}, "poll_s": 0.0}


def last(bot: Bot) -> list[dict[str, Any]]:
    """What the host said at last that it holds."""
    holds: list[dict[str, Any]] = bot.heard[-1][1]["holds"]
    return holds


def test_which_command_lines_are_for_it() -> None:
    assert is_meant(["--enrol", "http://bot"])
    assert is_meant(["--folder", "x", "--enrol=http://bot"])
    assert not is_meant(["--server", "http://bot"])


def test_a_code_is_used_once_and_the_credential_kept(folder: Path, bot: Bot) -> None:
    assert wants(folder, bot) == 0
    assert wants(folder, bot, labels="l4, big") == 0
    assert wants(folder, bot, code="", labels=None) == 0
    assert [path for path, _ in bot.heard] == ["hosts/enrol", *["hosts/poll"] * 3]
    assert [message["labels"] for path, message in bot.heard[1:]] == [["l4"], ["l4", "big"], ["l4", "big"]]
    kept = folder / "credential.json"
    assert json.loads(kept.read_text())["credential"] == bot.credential
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    before = bot.credential
    assert wants(folder, bot, code="code-2") == 0
    assert bot.credential != before


def test_an_answer_that_is_lost(folder: Path, bot: Bot) -> None:
    """The second try shows the same credential."""
    bot.refusal = SilentError("the connection broke")
    assert wants(folder, bot) == EXIT_REFUSED
    first, bot.refusal = bot.credential, None
    assert wants(folder, bot) == 0
    assert bot.credential == first


@pytest.mark.parametrize("refusal", [LeaseOverError("403"), RefusedError(404, {})])
def test_a_bot_that_does_not_want_it(
    folder: Path, bot: Bot, refusal: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    bot.refusal = refusal
    assert wants(folder, bot) == EXIT_REFUSED
    assert "could not be enrolled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"), [({"code": ""}, "benchbot pool add NAME"), ({"labels": "a b"}, "a label is made of")]
)
def test_a_wrong_call(
    folder: Path, bot: Bot, more: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wants(folder, bot, **more) == 2  # type: ignore[arg-type]
    assert said in capsys.readouterr().out


def test_two_loops_in_one_folder(folder: Path, bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    lock = (folder / "lock").open("w")
    hosting.fcntl.flock(lock, hosting.fcntl.LOCK_EX)
    assert wants(folder, bot) == 2
    assert "another loop" in capsys.readouterr().out
    lock.close()


def test_an_order_from_its_beginning_to_its_end(folder: Path, bot: Bot) -> None:
    """Begun once, told as running, kept over a restart of the loop, removed when it is not wanted any more."""
    assert wants(folder, bot, begins(), begins(), {**begins(), "start": None}) == 0
    (held,) = last(bot)
    assert (held["order"], held["state"], held["code"]) == ("bb-main-one-0", "running", "")
    place = folder / "orders" / "bb-main-one-0"
    assert stat.S_IMODE((place / "token").stat().st_mode) == 0o600
    until((place / "lease").exists)
    pid = json.loads((place / "tenant.json").read_text())["pid"]
    assert os.getsid(pid) == pid, "what ends the loop's session must not end the lease"
    assert wants(folder, bot, NOTHING, NOTHING) == 0
    assert last(bot) == []
    assert not place.exists()
    assert processes.working_in(place) == []


def test_the_computer_was_restarted(folder: Path, bot: Bot) -> None:
    """What it held is over, and said so until it is taken back."""
    assert wants(folder, bot, begins()) == 0
    place = folder / "orders" / "bb-main-one-0"
    until((place / "lease").exists)
    kept = json.loads((place / "tenant.json").read_text())
    (place / "tenant.json").write_text(json.dumps({**kept, "boot": "another"}))
    assert wants(folder, bot, {**begins(), "start": None}) == 0
    (held,) = last(bot)
    assert (held["state"], held["code"]) == ("stopped", "agent_lost")
    assert not (place / "lease").exists()
    until(lambda: not processes.working_in(place))
    assert wants(folder, bot, NOTHING, NOTHING) == 0
    assert last(bot) == []


def test_it_was_restarted_before_the_agent_was(folder: Path, bot: Bot) -> None:
    (folder / "orders" / "bb-main-one-0").mkdir(parents=True)
    assert wants(folder, bot, begins()) == 0
    (held,) = last(bot)
    assert (held["state"], held["code"]) == ("stopped", "agent_lost")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([], "0 of 1 devices are there"),
        ([Device("nvidia", "GPU", trouble="nvidia-smi says: GPU is lost")], "GPU is lost"),
    ],
)
def test_devices_that_are_not_well(
    folder: Path, bot: Bot, monkeypatch: pytest.MonkeyPatch, seen: list[Device], said: str
) -> None:
    monkeypatch.setattr(devices, "probe", lambda: seen)
    assert wants(folder, bot, begins(), NOTHING) == 0
    (held,) = last(bot)
    assert (held["state"], held["code"]) == ("stopped", "device_unhealthy")
    assert said in held["said"]


def test_strangers_code_without_root(folder: Path, bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert wants(folder, bot, begins(trusted=False), NOTHING) == 0
    (held,) = last(bot)
    assert (held["state"], held["code"]) == ("stopped", "config")
    assert bot.heard[-1][1]["isolates"] is False


def test_an_agent_that_outlives_its_deadline(folder: Path, bot: Bot) -> None:
    assert wants(folder, bot, begins(deadline_at=time.time() - 600)) == 0
    assert wants(folder, bot, NOTHING) == 0
    (held,) = last(bot)
    assert (held["state"], held["code"]) == ("stopped", "lease_timeout")


def test_an_agent_that_ends_by_itself(folder: Path, bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has removed its folder: that is no loss."""
    monkeypatch.setattr(hosting._Loop, "_fetch", lambda *_: b"print('the end')")
    assert wants(folder, bot, begins()) == 0
    tenant = Tenant(folder / "orders" / "bb-main-one-0")
    until(lambda: not tenant.alive)
    assert wants(folder, bot, NOTHING) == 0
    (held,) = last(bot)
    assert held == {"order": "bb-main-one-0", "state": "stopped", "code": "", "said": "the end"}


def test_nothing_is_probed_while_something_is_measured(folder: Path, bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    probes: list[float] = []
    monkeypatch.setattr(devices, "probe", lambda: probes.append(0.0) or [L4])
    monkeypatch.setattr(hosting, "_PROBE_EVERY_S", 0.0)
    running = {**begins(), "start": None}
    assert wants(folder, bot, begins(), running, running, running) == 0
    assert len(probes) == 2


def test_a_name_that_leads_elsewhere(folder: Path, bot: Bot) -> None:
    assert wants(folder, bot, begins("../../elsewhere"), NOTHING) == 0
    assert last(bot) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="another user for a lease can only be had as root")
def test_users_of_orders(folder: Path, bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken for as long as the order's mark is there."""
    assert wants(folder, bot, begins()) == 0
    mark = folder / "orders" / "bb-main-one-0" / "tenant.json"
    uid = json.loads(mark.read_text())["uid"]
    assert users.is_of(uid, mark)
    assert wants(folder, bot, NOTHING, NOTHING) == 0
    assert not users.is_of(uid, mark)


def until(happened: Any) -> None:
    """Wait for another process."""
    for _ in range(2000):
        if happened():
            return
        time.sleep(0.005)
    raise AssertionError(sys.executable)
