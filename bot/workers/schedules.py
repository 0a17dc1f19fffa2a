"""Schedules: when one is due, its benchmarks are run on the tip of the default branch."""

from bot.core.timing import next_time
from bot.github.client import Denied, Gone
from bot.store.memory import Schedule
from bot.store.requests import new_request
from bot.store.rows import Change
from bot.store.tables import Repository
from bot.workers.base import Worker
from bot.workers.unasked import NothingToRun, call_on, where_is

# the requester of what runs by the clock
WHO = "schedule"


class Schedules(Worker[Schedule]):
    """Makes a request each time a schedule is due; times that were missed are made up for by one."""

    noun = "schedule"
    table = Schedule

    async def step(self, row: Schedule) -> Change:
        """Ask for what the schedule stands for, and say when it is due next."""
        now, due_at = self.services.clock(), row.due_at
        if due_at is None or due_at > now:
            return Change(state=row.state, due_at=due_at)
        next_at = next_time(row.cron, row.timezone, now)
        async with self.services.database.read() as tx:
            repository = await tx.get_one(Repository, row.repository_id)
        try:
            tip = await self.services.api.branch(where_is(repository), repository.default_branch)
            call = await call_on(self.services, repository, tip, row.text, f"{WHO} {row.name}", since=row.last_sha)
        except NothingToRun as why:
            return Change(state="armed", due_at=next_at, values={"last_at": due_at, "said": str(why)})
        except (Gone, Denied):
            return Change(
                state="armed",
                due_at=next_at,
                values={"last_at": due_at, "said": "GitHub does not show us the repository."},
            )
        trigger = f"schedule:{row.id}:{due_at:.0f}"
        made = new_request(self.services.database, self.services.new_id(), trigger, "schedule", call, now)
        values: dict[str, object] = {"last_at": due_at, "last_sha": call.head_sha, "said": ""}
        return Change(state="armed", due_at=next_at, values=values, writes=(made,))
