"""`benchbot doctor`: what it says of settings, files, database, GitHub and addresses, and what a reference leads to."""

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections import namedtuple
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.__main__ import main
from bot.cli import doctor, examine_github
from bot.sandbox.hooks import Delivery
from bot.sandbox.hub import Fault
from bot.sandbox.world import Sandbox
from bot.settings import Settings
from runners.backends.base import Finding
from runners.backends.local import LocalBackend
from runners.protocol import PREFIX
from tests.harness.land import Land

REFERENCE = "mfzwizltoq"
Usage = namedtuple("Usage", ["total", "used", "free"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that the operator stands in, and nothing in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("BENCHBOT_")]:
        monkeypatch.delenv(name)
    return tmp_path


def says(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Exit status, and findings by what they are about."""
    status = main(["doctor", "--json", *words])
    by_about: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(capsys.readouterr().out)["findings"]:
        by_about.setdefault(finding["about"], []).append(finding)
    return status, by_about


def level(found: Mapping[str, list[dict[str, str]]], about: str) -> str:
    return " ".join(finding["level"] for finding in found.get(about, []))


# ---- settings and files ----------------------------------------------------------------------------------------------


def test_a_new_operator_in_an_empty_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No fault, the next step in words, and nothing was made."""
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "There is no benchbot.toml in" in said
    assert "benchbot setup --base-url" in said
    assert "Backend local" in said
    assert "\x1b" not in said
    assert said.endswith("2 warnings.\n")
    assert list(folder.iterdir()) == []


def test_every_fault_of_the_settings_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "benchbot.toml").write_text('port = "x"\ncolour = "red"\n[hardware.a]\nzones = "x"\n')
    status, found = says(capsys)
    assert status == 1
    assert {about: level(found, about) for about in found} == dict.fromkeys(("colour", "hardware.a", "port"), "fault")
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.count("Next:") == 1, "the same advice is given once"


def test_a_file_that_is_no_toml_or_not_there(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "benchbot.toml").write_text("port = \n")
    assert says(capsys)[0] == 1
    (folder / "benchbot.toml").write_bytes(b"\xff\xfe")
    assert "cannot read" in says(capsys)[1]["settings"][0]["sentence"]
    monkeypatch.setenv("BENCHBOT_CONFIG", "/nowhere.toml")
    status, found = says(capsys)
    assert (status, found["settings"][0]["sentence"]) == (1, "BENCHBOT_CONFIG names /nowhere.toml, which is no file.")


def test_names_that_nothing_reads(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHBOT_GITHUB_APPID", "3")
    (folder / "benchbot.toml").write_text('[hardware.a]\nbackend = "gec"\n[backends.tpus]\nproject = "x"\n')
    status, found = says(capsys)
    assert status == 1
    assert "`BENCHBOT_GITHUB_APP_ID`" in found["BENCHBOT_GITHUB_APPID"][0]["sentence"]
    assert "Did you mean `gce`?" in found["hardware.a"][0]["sentence"]
    assert "Did you mean `tpu`?" in found["backends.tpus"][0]["sentence"]


def test_secrets_that_others_can_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = folder / "benchbot.toml"
    config.write_text('[github]\nwebhook_secret = "x"\n')
    config.chmod(0o644)
    (told,) = says(capsys)[1]["secrets"]
    assert told["advice"] == f"chmod 600 {config}"
    config.chmod(0o600)
    assert "secrets" not in says(capsys)[1]


def test_the_data_folder(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not there yet, private, open to others, somebody else's, not to be written, and full."""
    data = folder / ".benchbot"
    data.mkdir(mode=0o700)
    assert level(says(capsys)[1], "data folder") == "ok"
    data.chmod(0o755)
    (told,) = says(capsys)[1]["data folder"]
    assert (told["level"], told["advice"]) == ("warning", f"chmod 700 {data}")
    data.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    (told,) = says(capsys)[1]["data folder"]
    assert (told["level"], "sudo -u" in told["advice"]) == ("warning", True)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    status, found = says(capsys)
    assert (status, level(found, "data folder")) == (1, "fault")
    assert "sudo chown -R 4000000" in found["data folder"][0]["advice"]
    data.rmdir()
    assert "sudo install -d -m 700" in says(capsys)[1]["data folder"][0]["advice"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_what_the_bot_keeps_from_others(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else, who cannot look into the data folder, is told to be the bot's user; nothing fails."""
    with tempfile.TemporaryDirectory() as place:
        monkeypatch.chdir(place)
        Path(place).chmod(0o755)
        assert main(["migrate"]) == 0
        capsys.readouterr()
        os.seteuid(65_534)
        try:
            status, found = says(capsys)
        finally:
            os.seteuid(0)
        monkeypatch.chdir("/")
    assert status == 1
    assert found["data folder"][0]["advice"].startswith("sudo -u root benchbot doctor")
    assert level(found, "database") == "fault"
    assert "check" not in found


@pytest.mark.parametrize(("free", "expected"), [(0.5e9, "fault"), (5e9, "warning"), (50e9, "ok")])
def test_the_disk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, free: float, expected: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1e12, 1e12 - free, free))
    disks = [finding for finding in says(capsys)[1]["disk"] if finding["part"] == "This bot"]
    assert [finding["level"] for finding in disks] == [expected]


# ---- database and incidents ------------------------------------------------------------------------------------------


def _change(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / ".benchbot" / "benchbot.db") as connection:
        connection.execute(statement, values)
    connection.close()


def test_the_database(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Migrated, of an earlier version, of a later one, and no database at all."""
    assert main(["migrate"]) == 0
    capsys.readouterr()
    assert level(says(capsys)[1], "database") == "ok"
    _change(folder, "UPDATE alembic_version SET version_num = '0001'")
    (told,) = says(capsys)[1]["database"]
    assert (told["level"], "benchbot migrate" in told["advice"]) == ("warning", True)
    _change(folder, "UPDATE alembic_version SET version_num = '9999'")
    status, found = says(capsys)
    assert (status, level(found, "database")) == (1, "fault")
    _change(folder, "DELETE FROM alembic_version")
    assert "no tables yet" in says(capsys)[1]["database"][0]["sentence"]
    (folder / ".benchbot" / "benchbot.db").write_bytes(b"x" * 5000)
    assert "not a database" in says(capsys)[1]["database"][0]["sentence"]


def test_a_database_that_is_away(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its password is not shown."""
    monkeypatch.setenv("BENCHBOT_DATABASE_URL", "postgresql+asyncpg://bot:hidden@127.0.0.1:9/bench")
    status, found = says(capsys)
    assert (status, level(found, "database")) == (1, "fault")
    assert "hidden" not in json.dumps(found)


def test_references(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An incident by its reference, or by the id of the row that it happened to; control characters are not printed."""
    assert main(["doctor", REFERENCE]) == 1
    assert "no incident" in capsys.readouterr().err
    assert not (folder / ".benchbot").exists()
    assert main(["migrate"]) == 0
    row = "kfzrtnnpvreex5dktrwozzl6qv"
    said = "Traceback:\n  ValueError: \x1b[31mred"
    _change(
        folder,
        "INSERT INTO incidents VALUES (?, ?, ?, ?)",
        REFERENCE,
        time.time() - 60,
        f"lease {row} in running",
        said,
    )
    capsys.readouterr()
    for word in (REFERENCE, row):
        assert main(["doctor", word]) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"{REFERENCE}: 20")
        assert f"lease {row} in running\nTraceback:\n  ValueError:" in told
        assert "\x1b" not in told
    assert main(["doctor", "--json", REFERENCE]) == 0
    (incident,) = json.loads(capsys.readouterr().out)["incidents"]
    assert incident["traceback"] == said
    assert main(["doctor", "aaaaaaaaaa"]) == 1
    (told_of,) = says(capsys)[1]["incidents"]
    assert (told_of["level"], told_of["advice"]) == ("warning", f"benchbot doctor {REFERENCE}")


@pytest.mark.parametrize(
    ("words", "said"), [(["gec"], "Did you mean `gce`?"), (["gce", REFERENCE], "not both"), (["x" * 9], "no reference")]
)
def test_wrong_calls(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *words]) == 2
    assert said in capsys.readouterr().err


# ---- backends --------------------------------------------------------------------------------------------------------


def test_one_backend_alone(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = says(capsys, "local")
    assert status == 0
    assert {finding["part"] for each in found.values() for finding in each} == {"Backend local"}
    status, found = says(capsys, "gce")
    assert (status, found["gce"][0]["sentence"]) == (1, "It is not configured.")


def test_a_check_with_a_bug(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Is a fault of its own, and hides nothing."""

    async def check(*_: object) -> tuple[Finding, ...]:
        raise KeyError("zones")

    monkeypatch.setattr(LocalBackend, "check", check)
    status, found = says(capsys)
    assert (status, found["check"][0]["sentence"]) == (1, "The check itself failed: KeyError: 'zones'")
    monkeypatch.setattr(doctor, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(LocalBackend, "check", lambda *_: asyncio.sleep(5))
    assert "did not answer" in says(capsys, "local")[1]["check"][0]["sentence"]


# ---- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({"/healthz": (200, "application/json", '{"status": "ok"}')}, "ok"),
        ({f"{PREFIX}/agent.pyz": (200, "application/zip", "PK")}, "ok"),
        ({"/healthz": (200, "text/html", "<h1>Welcome to nginx!</h1>")}, "fault"),
        ({}, "fault"),
    ],
)
async def test_who_answers(
    paths: dict[str, tuple[int, str, str]],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answer(request: web.Request) -> web.Response:
        status, kind, text = paths.get(request.path, (404, "text/plain", "Not Found"))
        return web.Response(status=status, content_type=kind, text=text)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        monkeypatch.setenv("BENCHBOT_AGENT_URL", str(server.make_url("")).rstrip("/"))
        _, found = await asyncio.to_thread(says, capsys)
    assert level(found, "bot") == expected


@pytest.mark.parametrize(
    ("url", "said"),
    [("http://127.0.0.1:9", "is this host itself"), ("http://localhost:9", "is this host"), ("http://[::1]:9", "host")],
)
def test_an_address_that_machines_cannot_reach(
    folder: Path, capsys: pytest.CaptureFixture[str], url: str, said: str
) -> None:
    (folder / "benchbot.toml").write_text(f'agent_url = "{url}"\n[hardware.a]\nbackend = "gce"\n')
    found = says(capsys)[1]
    assert level(found, "agent_url") == "warning"
    assert said in found["agent_url"][0]["sentence"]


# ---- GitHub ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def land(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Sandbox, Land]]:
    """A local GitHub with an App, and settings for it in the environment."""
    sandbox = Sandbox(tmp_path / "github")
    sandbox.hooks.held = True
    await sandbox.start()
    made = await Land.settle(sandbox, tmp_path, "https://bench.example.org/webhook")
    told = {
        "BASE_URL": "https://bench.example.org",
        "AGENT_URL": "http://127.0.0.1:9",
        "GITHUB_APP_ID": str(made.app.id),
        "GITHUB_PRIVATE_KEY": made.app.private_key,
        "GITHUB_WEBHOOK_SECRET": made.app.webhook_secret,
        "GITHUB_API_URL": sandbox.api_url,
        "GITHUB_WEB_URL": sandbox.url,
    }
    for name, value in told.items():
        monkeypatch.setenv(f"BENCHBOT_{name}", value)
    yield sandbox, made
    await sandbox.stop()


async def github(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, str]]]:
    """Exit status, and GitHub's findings by what they are about."""
    status, found = await asyncio.to_thread(says, capsys)
    return status, {about: each for about, them in found.items() for each in them if each["part"] == "GitHub"}


def _delivery(land: Land, guid: str, code: int) -> Delivery:
    more = {"event": "ping", "body": b"{}", "installation_id": 1, "repository_id": 1, "delivered_at": time.time()}
    return Delivery(id=hash(guid) % 10**6, guid=guid, app=land.app, status_code=code, **more)  # type: ignore[arg-type]


async def test_github_when_all_is_well(land: tuple[Sandbox, Land], capsys: pytest.CaptureFixture[str]) -> None:
    land[0].hooks.sent = [_delivery(land[1], "b", 202), _delivery(land[1], "a", 202), _delivery(land[1], "a", 502)]
    status, found = await github(capsys)
    assert {about: finding["level"] for about, finding in found.items()} == dict.fromkeys(
        ("App", "clock", "permissions", "webhook", "deliveries", "installations"), "ok"
    )
    assert status == 0


async def test_an_app_that_is_another(
    land: tuple[Sandbox, Land], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id that GitHub does not know, and a text that is no key."""
    assert land
    monkeypatch.setenv("BENCHBOT_GITHUB_APP_ID", "4711")
    status, found = await github(capsys)
    assert (status, list(found)) == (1, ["clock", "App"])
    assert "knows no App 4711" in found["App"]["sentence"]
    monkeypatch.setenv("BENCHBOT_GITHUB_PRIVATE_KEY", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----")
    assert "The private key cannot be used" in (await github(capsys))[1]["App"]["sentence"]


async def test_a_github_that_is_away(
    land: tuple[Sandbox, Land], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    land[0].hub.faults.append(Fault(method="GET", path="/app$", status=502))
    status, found = await github(capsys)
    assert (status, found["GitHub"]["level"]) == (1, "fault")
    assert "does not answer as it should" in found["GitHub"]["sentence"]
    land[0].hub.faults.append(Fault(method="GET", path="/app/hook/config$", status=404))
    found = (await github(capsys))[1]
    assert [about for about in found if found[about]["level"] == "ok"] == ["App", "clock", "permissions"]
    assert "does not answer as it should" in found["GitHub"]["sentence"]
    monkeypatch.setenv("BENCHBOT_GITHUB_API_URL", "http://127.0.0.1:9")
    assert "does not answer as it should" in (await github(capsys))[1]["GitHub"]["sentence"]


async def test_rights_that_differ(land: tuple[Sandbox, Land], capsys: pytest.CaptureFixture[str]) -> None:
    """Less is a fault, more is a warning."""
    app = land[1].app
    app.permissions = {**app.permissions, "checks": "read", "administration": "write"}
    app.events = ("issue_comment",)
    status, found = await github(capsys)
    assert status == 1
    assert "more than it needs: administration: write" in found["permissions"]["sentence"]
    assert "check_run, check_suite" in found["events"]["sentence"]
    assert found["events"]["advice"].endswith("/settings/apps/benchbot/permissions")
    assert "has not granted checks: write" in found["installations"]["sentence"]
    app.permissions = {**app.permissions, "administration": "none"}
    assert "The App lacks checks: write" in (await github(capsys))[1]["permissions"]["sentence"]


@pytest.mark.parametrize(
    ("codes", "expected", "advice"),
    [
        ([401, 202], "fault", "github.webhook_secret"),
        ([404], "fault", "Let the proxy pass"),
        ([0], "fault", "open to the internet"),
        ([202, 0, 202], "warning", "asks for them again"),
    ],
)
async def test_deliveries_that_did_not_arrive(
    land: tuple[Sandbox, Land], capsys: pytest.CaptureFixture[str], codes: list[int], expected: str, advice: str
) -> None:
    land[0].hooks.sent = [_delivery(land[1], str(number), code) for number, code in enumerate(codes)]
    found = (await github(capsys))[1]["deliveries"]
    assert (found["level"], advice in found["advice"]) == (expected, True)


async def test_where_it_is_installed(land: tuple[Sandbox, Land], capsys: pytest.CaptureFixture[str]) -> None:
    land[0].state.installations.clear()
    found = (await github(capsys))[1]["installations"]
    assert (found["level"], found["advice"].endswith("/apps/benchbot/installations/new")) == ("warning", True)


@pytest.mark.parametrize(
    ("hook", "expected", "said"),
    [
        ({"url": ""}, "fault", "has no address"),
        ({"secret": ""}, "fault", "not signed"),
        ({"content_type": "form"}, "fault", "not sent as JSON"),
        ({"url": "https://smee.example.org/x"}, "warning", "GitHub sends to https://smee.example.org/x"),
        ({"insecure_ssl": "1"}, "warning", "does not check"),
        ({}, "ok", "GitHub sends to https://bench.example.org/webhook"),
    ],
)
def test_the_webhook(hook: dict[str, Any], expected: str, said: str, folder: Path) -> None:
    right = {"url": "https://bench.example.org/webhook", "secret": "********", "content_type": "json"}
    settings = replace(_settings(folder), base_url="https://bench.example.org")
    found = examine_github._hook(settings, {**right, "insecure_ssl": "0", **hook}, "https://github.com/page")
    assert (found.level, said in found.sentence) == (expected, True)


def _settings(folder: Path) -> Settings:
    return Settings(data_folder=folder, database_url="", base_url="", agent_url="")
