"""What a handler works with: rows to read, the time, new ids. It writes by returning statements."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Executable

from bot.core.nouns import Refusal
from bot.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """`trigger` names what asked, uniquely: the same trigger makes one request however often it comes."""

    database: Database
    now: float
    new_id: Callable[[], str]
    base_url: str
    prefix: str
    trigger: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one line comes to: an answer in our own Markdown, a refusal, or a request; and the rows to write."""

    text: str = ""
    refusal: Refusal | None = None
    request_id: str = ""
    writes: tuple[Executable, ...] = ()
