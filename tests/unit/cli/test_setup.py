"""`benchbot setup` and `benchbot replay` against the local GitHub: registered, stored, installed, heard."""

import asyncio
import json
import re
import stat
import tomllib
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
from aiohttp import ClientSession

from bot.__main__ import main
from bot.cli.local import free_port
from bot.sandbox.world import Sandbox
from tests.harness.cases import case_file
from tests.harness.land import FULL_NAME, Land
from tests.harness.world import open_world


@pytest.fixture
async def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    monkeypatch.chdir(tmp_path)
    made = Sandbox(tmp_path / "github")
    made.hooks.held = True
    await made.start()
    monkeypatch.setenv("BENCHBOT_GITHUB_API_URL", made.api_url)
    monkeypatch.setenv("BENCHBOT_GITHUB_WEB_URL", made.url)
    try:
        yield made
    finally:
        await made.stop()


def _hidden(page: str) -> dict[str, str]:
    """The hidden fields of a form, as a browser would send them."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: unescape(value) for name, value in found}


async def _confirm(port: int) -> str:
    """A person opens the page, goes on to GitHub and confirms; the last page's text."""
    async with ClientSession() as browser:
        for _ in range(100):
            try:
                async with browser.get(f"http://127.0.0.1:{port}/") as first:
                    page = await first.text()
                break
            except OSError:
                await asyncio.sleep(0.05)
        target = re.search(r'action="([^"]*)"', page)
        assert target is not None
        async with browser.post(unescape(target[1]), data=_hidden(page)) as asked:
            question = await asked.text()
        assert "pull requests: write" in question
        origin = unescape(target[1]).partition("/settings")[0].partition("/organizations")[0]
        async with browser.post(f"{origin}/settings/apps/confirm", data=_hidden(question)) as done:
            return await done.text()


async def test_setup_registers_and_stores(sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    (tmp_path / "benchbot.toml").write_text('deployment = "prod"\n')
    words = ["setup", "--base-url", "https://bench.example.org/", "--organization", "acme", "--port", str(port)]
    running = asyncio.create_task(asyncio.to_thread(main, words))
    assert "Registered" in await asyncio.wait_for(_confirm(port), 20)
    assert await asyncio.wait_for(running, 20) == 0
    stored = tomllib.loads((tmp_path / "benchbot.toml").read_text())
    (app,) = sandbox.state.apps.values()
    assert stored["deployment"] == "prod"
    assert stored["base_url"] == "https://bench.example.org"
    assert stored["github"]["app_id"] == app.id
    assert stored["github"]["webhook_secret"] == app.webhook_secret
    _holds_privately(Path(stored["github"]["private_key_file"]), app.private_key)
    _holds_privately(tmp_path / "benchbot.toml", "bench.example.org")
    assert app.webhook_url == "https://bench.example.org/webhook"
    assert "issue_comment" in app.events
    assert app.permissions["contents"] == "read"
    assert "administration" not in app.permissions
    assert f"/apps/{app.slug}/installations/new" in capsys.readouterr().out
    # a second App would take the first one's place
    assert await asyncio.to_thread(main, words) == 2


def _holds_privately(path: Path, text: str) -> None:
    assert text in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_page_that_installs(sandbox: Sandbox, tmp_path: Path) -> None:
    land = await Land.settle(sandbox, tmp_path, "")
    sandbox.state.installations.clear()
    async with ClientSession() as browser:
        url = f"{sandbox.url}/apps/{land.app.slug}/installations/new"
        async with browser.get(url) as page:
            assert "Install on acme" in await page.text()
        async with browser.post(url, data={"owner": "acme"}) as done:
            assert "is installed on acme" in await done.text()
    (installation,) = sandbox.state.installations.values()
    assert installation.account is land.repository.owner
    assert land.repository.full_name == FULL_NAME


async def test_an_answer_with_another_state_is_not_taken(sandbox: Sandbox, tmp_path: Path) -> None:
    port = free_port()
    words = ["setup", "--base-url", "https://bench.example.org", "--port", str(port)]
    running = asyncio.create_task(asyncio.to_thread(main, words))
    async with ClientSession() as browser:
        for _ in range(100):
            try:
                async with browser.get(f"http://127.0.0.1:{port}/setup/done?code=x&state=wrong") as answer:
                    assert answer.status == 400
                break
            except OSError:
                await asyncio.sleep(0.05)
    assert "Registered" in await asyncio.wait_for(_confirm(port), 20)
    assert await asyncio.wait_for(running, 20) == 0


async def test_replay_of_a_recorded_webhook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async with open_world(tmp_path / "w") as world:
        settings = world.services.settings
        monkeypatch.setenv("BENCHBOT_GITHUB_APP_ID", str(settings.app_id))
        monkeypatch.setenv("BENCHBOT_GITHUB_PRIVATE_KEY", settings.private_key)
        monkeypatch.setenv("BENCHBOT_GITHUB_WEBHOOK_SECRET", settings.webhook_secret)
        monkeypatch.setenv("BENCHBOT_BASE_URL", settings.base_url)
        recorded = tmp_path / "comment.json"
        recorded.write_bytes(case_file("15-issue_comment-created.json").read_bytes())
        assert await asyncio.to_thread(main, ["replay", str(recorded)]) == 0
        (tmp_path / "broken.json").write_text("{")
        assert await asyncio.to_thread(main, ["replay", str(tmp_path / "broken.json")]) == 2
        (tmp_path / "odd.json").write_text(json.dumps({"zen": "x"}))
        assert await asyncio.to_thread(main, ["replay", str(tmp_path / "odd.json")]) == 2
        monkeypatch.setenv("BENCHBOT_GITHUB_WEBHOOK_SECRET", "another")
        assert await asyncio.to_thread(main, ["replay", str(recorded)]) == 3
        monkeypatch.setenv("BENCHBOT_BASE_URL", "http://127.0.0.1:9")
        assert await asyncio.to_thread(main, ["replay", str(recorded)]) == 3
