"""A pull request's page of the local GitHub: it looks for news by itself and leaves alone what somebody does there."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import ConsoleMessage, Page, expect

from bot.sandbox.state import Comment
from bot.sandbox.world import Sandbox
from tests.browser.conftest import Visit
from tests.harness.land import FULL_NAME, Land

pytestmark = pytest.mark.browser


@dataclass
class Local:
    """A local GitHub without a bot."""

    sandbox: Sandbox
    land: Land

    def says(self, login: str, body: str) -> Comment:
        who = self.sandbox.add_account(login)
        return self.sandbox.acts.comment(self.land.repository, 1, who, body)

    def edits(self, comment: Comment, body: str) -> None:
        self.sandbox.acts.edit(self.land.repository, self.land.pull, comment, comment.author, body)

    @staticmethod
    def _hear(visit: Visit, said: ConsoleMessage) -> None:
        """What the browser refuses to do is a fault; that a form was refused is what a test wanted."""
        if said.type == "error" and not said.text.startswith("Failed to load resource"):
            visit.complaints.append(said.text)

    async def open(self, visit: Visit, *, width: int = 1280, dark: bool = False) -> Page:
        page = await visit.page(width=width, dark=dark)
        page.on("console", lambda said: self._hear(visit, said))
        await page.goto(f"{self.sandbox.url}/{FULL_NAME}/pull/1")
        return page


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    sandbox = Sandbox(tmp_path / "github")
    sandbox.hooks.held = True
    await sandbox.start()
    try:
        yield Local(sandbox, await Land.settle(sandbox, tmp_path, "http://127.0.0.1:9/webhook"))
    finally:
        await sandbox.stop()


async def _looked(page: Page) -> None:
    """The page has looked for news twice: what the first look found is shown."""
    for _ in range(2):
        async with page.expect_response(lambda answer: answer.url.endswith("/timeline")):
            pass


async def test_a_comment_is_typed_and_seen(local: Local, visit: Visit) -> None:
    page = await local.open(visit)
    box = page.locator("form", has=page.get_by_label("Comment, for example"))
    await box.get_by_role("textbox").fill("/benchmark **all**")
    await box.get_by_role("combobox").select_option("tom")
    await box.get_by_role("button", name="Comment", exact=True).click()
    (said,) = local.land.pull.comments
    assert (said.author.login, said.body) == ("tom", "/benchmark **all**")
    shown = page.locator(f"#issuecomment-{said.id}")
    await expect(shown).to_be_in_viewport()
    await expect(shown.locator("strong")).to_have_text("all")
    await expect(box.get_by_role("combobox")).to_have_value("tom")
    await expect(box.get_by_role("textbox")).to_have_value("")


async def test_a_page_without_news_is_left_as_it_is(local: Local, visit: Visit) -> None:
    local.says(
        "maya",
        "one\r\ntwo & <b>three</b>\r\n\r\n<details><summary>more</summary>\r\n\r\n| a |\n|--:|\n| 1 |\n\n</details>",
    )
    page = await local.open(visit)
    await page.evaluate(
        "window.changes = 0;"
        "new MutationObserver(() => { window.changes += 1 }).observe(document.querySelector('main'),"
        " { childList: true, subtree: true, attributes: true, characterData: true })"
    )
    await _looked(page)
    assert await page.evaluate("window.changes") == 0
    local.says("ada", "news")
    await expect(page.get_by_text("news", exact=True).first).to_be_visible()
    assert await page.evaluate("window.changes") > 0


async def test_news_leave_alone_what_somebody_does(local: Local, visit: Visit) -> None:
    results = local.says("maya", "Round 1\n\n<details><summary>Runs (2)</summary>\n\ninside one\n\n</details>")
    mine = local.says("sam", "my words")
    page = await local.open(visit)
    await page.get_by_label("Comment, for example").fill("half a thought")
    await page.get_by_text("Runs (2)", exact=True).click()
    editing = page.locator(f"#issuecomment-{mine.id}")
    await editing.get_by_text("Edit", exact=True).click()
    await editing.get_by_role("textbox").fill("my better words")
    local.edits(results, "Round 2\n\n<details><summary>Runs (4)</summary>\n\ninside two\n\n</details>")
    local.sandbox.acts.react(mine, local.sandbox.add_account("ada"), "rocket")
    await expect(page.get_by_text("Round 2", exact=True)).to_be_visible()
    await expect(page.get_by_text("inside two", exact=True)).to_be_visible()
    await expect(page.get_by_label("Comment, for example")).to_have_value("half a thought")
    # the comment that is being edited waits with its news until it is saved
    await expect(editing.get_by_role("textbox")).to_have_value("my better words")
    await expect(editing.get_by_text("🚀")).to_have_count(0)
    await editing.get_by_role("button", name="Save").click()
    await expect(editing.locator(".body")).to_have_text("my better words")
    await expect(editing.get_by_text("🚀")).to_be_visible()


async def test_what_is_read_stays_where_it_is(local: Local, visit: Visit) -> None:
    first = local.says("maya", "short")
    for number in range(12):
        local.says("ada", f"remark {number}\n\n" + "word " * 200)
    page = await local.open(visit)
    read = page.get_by_text("remark 6", exact=True).first
    await read.scroll_into_view_if_needed()
    await page.mouse.wheel(0, 150)
    before = await _resting(page, "remark 6")
    local.edits(first, "\n\n".join(["longer"] * 30))
    await expect(page.get_by_text("longer", exact=True).first).to_be_attached()
    assert abs(await _resting(page, "remark 6") - before) <= 1


async def _resting(page: Page, words: str) -> float:
    """Where a text stands in the window once nothing moves, in pixels."""
    box, again = None, await page.get_by_text(words, exact=True).first.bounding_box()
    while box != again:
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        box, again = again, await page.get_by_text(words, exact=True).first.bounding_box()
    assert again is not None
    return again["y"]


async def test_state_and_check_runs_follow(local: Local, visit: Visit) -> None:
    page = await local.open(visit)
    land = local.land
    fields = {
        "name": "benchbot / resnet50",
        "status": "in_progress",
        "output": {"title": "training", "summary": "x"},
        "actions": [{"label": "Cancel", "description": "Stop it.", "identifier": "cancel"}],
    }
    check = local.sandbox.acts.check(land.repository, land.app, land.pull.head_sha, fields)
    checks = page.get_by_label("Check runs")
    await expect(checks).to_contain_text("in progress: training")
    await checks.get_by_role("combobox").select_option("sam")
    await checks.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("alert")).to_contain_text("write rights")
    await expect(page.get_by_role("alert")).to_be_in_viewport()
    await page.get_by_role("link", name="Back to the form").click()
    await expect(checks).to_be_in_viewport()
    await page.get_by_label("Check runs").get_by_role("combobox").select_option("maya")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("alert")).to_have_count(0)
    pressed = [each.payload for each in local.sandbox.hooks.waiting if each.payload["action"] == "requested_action"]
    assert [each["sender"]["login"] for each in pressed] == ["maya"]
    local.sandbox.acts.update_check(land.repository, check, {"conclusion": "success", "actions": []})
    await local.sandbox.acts.close(land.repository, 1, land.pull.author)
    await expect(page.get_by_role("button", name="Re-run")).to_be_visible()
    await expect(page.locator("#state")).to_contain_text("Closed")
    await page.get_by_text("Reopen", exact=True).first.click()
    await page.get_by_role("button", name="Reopen").click()
    await expect(page.locator("#state")).to_contain_text("Open")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
async def test_every_page_fits(local: Local, visit: Visit, width: int, dark: bool) -> None:
    land = local.land
    wide = (
        "| metric | base | head |\n|---|--:|--:|\n" + f"| {'accuracy' * 12} | 0.91234567890123 | 0.91234567890123 |\n"
    )
    local.says("maya", f"{wide}\n```\n{'code ' * 60}\n```\n{'longword' * 40}")
    output = {"title": "no change", "summary": wide, "annotations": []}
    fields = {"name": "benchbot / " + "long" * 20, "conclusion": "success", "output": output}
    check = local.sandbox.acts.check(land.repository, land.app, land.pull.head_sha, fields)
    page = await local.open(visit, width=width, dark=dark)
    here = f"{local.sandbox.url}/{FULL_NAME}"
    for fold in ("Review", "Close or merge", "Push to this branch"):
        await page.get_by_text(fold, exact=True).click()
    for path in ("pull/1", "pull/1/files", f"runs/{check.id}", f"commit/{land.pull.head_sha}", "pulls", "../.."):
        if path != "pull/1":
            await page.goto(f"{here}/{path}")
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wider) <= 0, path
