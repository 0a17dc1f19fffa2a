"""What a handler works with: rows to read, the time, new ids. It writes by returning statements."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Executable

from bot.core.calls import plan_of, with_history, within_caps
from bot.core.nouns import Call, Plan, Refusal
from bot.core.planning import may_reuse
from bot.store.database import Database
from bot.store.history import base_runs
from bot.store.ledger import accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """`trigger` names what asked, uniquely: the same trigger makes one request however often it comes."""

    database: Database
    now: float
    new_id: Callable[[], str]
    base_url: str
    prefix: str
    trigger: str

    async def plan(self, call: Call) -> Plan | Refusal:
        """The leases of a call as its worker would plan them now, or why there are none."""
        planned = plan_of(call, self.prefix)
        if isinstance(planned, Refusal) or not may_reuse(call.command):
            return planned
        async with self.database.read() as tx:
            return with_history(call, planned, await base_runs(tx, call, planned))

    async def too_much(self, call: Call, planned: Plan) -> Refusal | None:
        """Why the plan would be more than requests may cost together now; its own worker asks again, and decides."""
        async with self.database.read() as tx:
            return within_caps(call, planned, await accounts(tx, call, self.now), self.now, self.prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one line comes to: an answer in our own Markdown, a refusal, or a request; and the rows to write."""

    text: str = ""
    refusal: Refusal | None = None
    request_id: str = ""
    writes: tuple[Executable, ...] = ()
