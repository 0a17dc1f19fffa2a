"""`benchbot pool`: what the operator of a pool reads and types."""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from bot.__main__ import main
from bot.core.pool import Device, HostReport
from bot.store.database import Database
from bot.store.hosts import StoredPool, enrol, hear
from runners.spec import MachineOrder, Offer

MAX = Device(vendor="intel", name="Max 1100")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCHBOT_AGENT_URL", "https://bench.example.org")


def on_rows(act: Callable[[Database], Coroutine[Any, Any, object]]) -> None:
    """Do something with the rows of the deployment."""

    async def go() -> None:
        database = Database(f"sqlite+aiosqlite:///{Path.cwd()}/.benchbot/benchbot.db")
        await act(database)
        await database.close()

    asyncio.run(go())


def listed(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["pool", "list"]) == 0
    return capsys.readouterr().out


def test_a_host_from_invitation_to_removal(capsys: pytest.CaptureFixture[str]) -> None:
    assert "There are no hosts" in listed(capsys)
    assert main(["pool", "add", "max-1"]) == 0
    said = capsys.readouterr().out
    code = re.search(r"--enrol https://bench\.example\.org --code (\w{26}) --labels", said)
    assert code
    assert "curl -fsSO https://bench.example.org/agent/v1/agent.pyz" in said
    assert listed(capsys) == "max-1: not enrolled yet\n"

    def report(*devices: Device) -> HostReport:
        return HostReport(labels=("xpu", "big"), devices=devices)

    async def joins(database: Database) -> None:
        assert await enrol(database, code[1], "credential", time.time()) == "max-1"
        await hear(database, "credential", report(MAX, MAX), time.time() - 7)

    on_rows(joins)
    assert re.fullmatch(
        r"max-1: labels xpu, big; 2 x Max 1100; heard of [78] s ago; free; not root: no code of strangers\n",
        listed(capsys),
    )
    order = MachineOrder(
        name="bb-1",
        deployment="main",
        lease_id="L1",
        server_url="https://bench.example.org",
        token="token-1",
        deadline_at=0.0,
        offer=Offer(backend="pool"),
    )

    async def fails(database: Database) -> None:
        pool = StoredPool(database, time.time)
        for _ in range(2):
            assert await pool.give("max-1", order)
            await hear(database, "credential", report(MAX, MAX), time.time())
            await pool.take_back("max-1", "bb-1")
            await hear(database, "credential", report(MAX), time.time())
        assert not await pool.give("max-1", order)

    on_rows(fails)
    said = listed(capsys)
    assert "trouble: 1 of 2 devices are there; device faults: 2; quarantined: 2 device faults, the last one:" in said
    assert main(["pool", "release", "max-1"]) == 0
    assert "trouble" not in listed(capsys)
    on_rows(lambda database: StoredPool(database, time.time).give("max-1", order))
    assert "given bb-1" in listed(capsys)
    assert main(["pool", "remove", "max-1"]) == 1
    assert "it holds a lease" in capsys.readouterr().err
    on_rows(lambda database: StoredPool(database, time.time).take_back("max-1", "bb-1"))
    assert main(["pool", "remove", "max-1"]) == 0
    assert "There are no hosts" in listed(capsys)


@pytest.mark.parametrize("act", ["release", "remove"])
def test_a_host_that_is_not_there(act: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pool", act, "max-9"]) == 1
    assert "max-9: there is no such host" in capsys.readouterr().err


def test_a_name_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pool", "add", "max 1; reboot"])
    assert "a name is made of" in capsys.readouterr().err
