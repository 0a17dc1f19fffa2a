"""All parts of the local GitHub in one value, as its API and its pages see them; and faults that a test orders."""

import re
from dataclasses import dataclass, field

from aiohttp import web

from bot.sandbox.acts import Acts
from bot.sandbox.hooks import Hooks
from bot.sandbox.shapes import Shapes
from bot.sandbox.state import State


@dataclass(slots=True, kw_only=True)
class Fault:
    """The next `times` calls that fit are answered with `status`; with `after`, once what was asked has been done."""

    method: str
    path: str
    status: int = 502
    after: bool = False
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)

    def fits(self, method: str, path: str) -> bool:
        """Whether it strikes this call; `path` is a regular expression found anywhere in the path."""
        return self.times > 0 and self.method == method and re.search(self.path, path) is not None


@dataclass(slots=True, kw_only=True)
class Hub:
    """State, the JSON of it, what can be done, whom it is told; `calls` are the API calls that were made."""

    state: State
    shapes: Shapes
    acts: Acts
    hooks: Hooks
    faults: list[Fault] = field(default_factory=list)
    calls: list[tuple[str, str, int]] = field(default_factory=list)


HUB = web.AppKey("hub", Hub)
