"""A browser without scripts on the pages of a local GitHub."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar

from bot.sandbox.state import Comment
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

    async def comment(self, who: str, body: str) -> Comment:
        await self.send({"act": "comment", "who": who, "body": body})
        return self.land.pull.comments[-1]

    def told(self, event: str) -> Iterator[dict[str, Any]]:
        """What the App was told, oldest first."""
        return (each.payload for each in self.sandbox.hooks.waiting if each.event == event)


class Elements(HTMLParser):
    """Every element of a page: its name and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


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
