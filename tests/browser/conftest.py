"""Chromium: Debian's, driven from here. Missing on a laptop the tests are skipped, missing in CI they fail."""

import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.harness.world import World, open_world

KNOWN = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The installed browser."""
    found = next((path for name in KNOWN if (path := shutil.which(name))), None)
    if found is None:
        sentence = "Chromium is not installed; `apt-get install chromium` brings it"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return found


@dataclass
class Visit:
    """A browser, and everything that its pages complained about."""

    browser: Browser
    complaints: list[str] = field(default_factory=list)

    async def page(self, *, width: int = 1280, dark: bool = False) -> Page:
        """A new page of a given width."""
        scheme = "dark" if dark else "light"
        context = await self.browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = await context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page


@pytest.fixture
async def visit() -> AsyncIterator[Visit]:
    path = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        made = Visit(browser)
        yield made
        await browser.close()
        assert made.complaints == []


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as made:
        yield made
