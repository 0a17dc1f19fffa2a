"""Pages of the local GitHub: what the forms do, what is kept out."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar

from bot.sandbox.world import Sandbox
from tests.harness.land import FULL_NAME, Land


@dataclass
class Browser:
    """A browser without scripts."""

    session: ClientSession
    sandbox: Sandbox
    land: Land

    @property
    def pull_url(self) -> str:
        return f"{self.sandbox.url}/{FULL_NAME}/pull/1"

    async def get(self, path: str, status: int = 200) -> str:
        async with self.session.get(self.sandbox.url + path) as answer:
            assert answer.status == status, await answer.text()
            return await answer.text()

    async def send(self, form: dict[str, str], status: int = 200, headers: dict[str, str] | None = None) -> str:
        async with self.session.post(self.pull_url, data=form, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return await answer.text()


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    sandbox = Sandbox(tmp_path / "github")
    sandbox.hooks.held = True
    await sandbox.start()
    try:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            yield Browser(session, sandbox, await Land.settle(sandbox, tmp_path, "http://127.0.0.1:9/webhook"))
    finally:
        await sandbox.stop()


async def test_every_page_opens(browser: Browser) -> None:
    assert FULL_NAME in await browser.get("/")
    assert "Make it faster" in await browser.get(f"/{FULL_NAME}/pulls")
    assert "Make it faster" in await browser.get(f"/{FULL_NAME}")
    assert "It is faster now." in await browser.get(f"/{FULL_NAME}/pull/1")
    head = browser.land.pull.head_sha
    assert "faster" in await browser.get(f"/{FULL_NAME}/commit/{head}")
    assert "+print" in await browser.get(f"/{FULL_NAME}/pull/1/files")
    assert "<svg" in await browser.get(f"/avatars/{browser.land.repository.owner.id}")
    for path in ("/nobody/nothing", f"/{FULL_NAME}/pull/9", f"/{FULL_NAME}/commit/abc", f"/{FULL_NAME}/runs/1"):
        assert "Not Found" in await browser.get(path, status=404)


async def test_a_comment_is_shown_and_told(browser: Browser) -> None:
    page = await browser.send({"act": "comment", "who": "maya", "body": "/benchmark **resnet50**"})
    assert "<strong>resnet50</strong>" in page
    assert '<option value="maya" selected>' in page
    (delivery,) = [each for each in browser.sandbox.hooks.waiting if each.event == "issue_comment"]
    assert delivery.payload["comment"]["body"] == "/benchmark **resnet50**"
    assert delivery.payload["sender"]["login"] == "maya"


async def test_what_a_comment_cannot_do(browser: Browser) -> None:
    hostile = (
        "<script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>x</a>"
        "<style>*{display:none}</style><iframe src=/></iframe>\n\n[x](javascript:alert(1)) ![x](data:text/html,x)\n"
        "<details open><summary>more</summary>\n\n**kept**\n\n</details>"
    )
    page = await browser.send({"act": "comment", "who": "sam", "body": hostile})
    shown = page.partition('id="timeline"')[2].partition("Take part")[0]
    for word in ("<script", "onerror", '"javascript:', "<style", "<iframe", '"data:text'):
        assert word not in shown
    assert "<strong>kept</strong>" in shown
    assert "<summary>more</summary>" in shown


async def test_reviews_closing_and_merging(browser: Browser) -> None:
    pull = browser.land.pull
    page = await browser.send({"act": "review", "who": "maya", "event": "APPROVE", "body": ""})
    assert "approved" in page
    assert "own pull request" in await browser.send({"act": "review", "who": "ada", "event": "APPROVE"}, status=422)
    assert "may not close" in await browser.send({"act": "close", "who": "sam", "event": "close"}, status=403)
    await browser.send({"act": "close", "who": "ada", "event": "close"})
    assert not pull.open
    await browser.send({"act": "close", "who": "ada", "event": "reopen"})
    assert pull.open
    assert "Merged" in await browser.send({"act": "close", "who": "maya", "event": "merge"})


async def test_buttons_of_a_check_run(browser: Browser) -> None:
    sandbox, land = browser.sandbox, browser.land
    action = {"label": "Cancel", "description": "Stop it.", "identifier": "cancel"}
    output = {"title": "Running", "summary": "*now*"}
    fields = {"name": "benchbot", "status": "in_progress", "actions": [action], "output": output}
    check = sandbox.acts.check(land.repository, land.app, land.pull.head_sha, fields)
    assert "Cancel" in await browser.get(f"/{FULL_NAME}/pull/1")
    assert "<em>now</em>" in await browser.get(f"/{FULL_NAME}/runs/{check.id}")
    press = {"act": "press", "check": str(check.id), "button": "cancel"}
    await browser.send({**press, "who": "maya"})
    assert "write rights" in await browser.send({**press, "who": "sam"}, status=403)
    pressed = [each for each in sandbox.hooks.waiting if each.payload["action"] == "requested_action"]
    assert [each.payload["requested_action"] for each in pressed] == [{"identifier": "cancel"}]


async def test_other_sites_cannot_send_forms(browser: Browser) -> None:
    form = {"act": "comment", "who": "maya", "body": "/benchmark all"}
    await browser.send(form, status=403, headers={"Origin": "http://evil.example"})
    await browser.send(form, status=403, headers={"Sec-Fetch-Site": "cross-site"})
    await browser.send(form, status=421, headers={"Host": "evil.example"})
    assert browser.land.pull.comments == []


async def test_a_wrong_form_says_so(browser: Browser) -> None:
    assert "missing" in await browser.send({"act": "comment", "who": "maya", "body": "  "}, status=422)
    await browser.send({"act": "comment", "who": "nobody", "body": "x"}, status=404)
    await browser.send({"act": "dance", "who": "maya"}, status=404)
