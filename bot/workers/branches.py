"""Default branches: what has landed on them, and the schedules that their newest configuration asks for."""

from collections.abc import Mapping

from sqlalchemy import Executable

from bot.core.branches import Landed, Walker
from bot.core.nouns import RepoConfig, Trigger
from bot.core.repo_config import CONFIG_PATH, load
from bot.core.timing import next_time
from bot.github.client import Denied, Gone, Where
from bot.store.facts import remember_repository
from bot.store.history import arm, landed, positions_of
from bot.store.memory import Branch
from bot.store.requests import new_request
from bot.store.rows import Change
from bot.store.tables import Repository
from bot.workers.base import Worker
from bot.workers.unasked import NothingToRun, call_on, where_is

# a push that was never told of is found after a day
LOOK_S = 24 * 3600.0
# commits that are walked at most: the first time, and to find what is known
FIRST_WALK = 500
LONGEST_WALK = 5_000


class Branches(Worker[Branch]):
    """Keeps the first-parent history of each repository's default branch, and its schedules."""

    noun = "branch"
    table = Branch

    async def step(self, row: Branch) -> Change:
        """Look at the tip; when it has moved, walk back to what is known and read the configuration anew."""
        now = self.services.clock()
        async with self.services.database.read() as tx:
            repository = await tx.get_one(Repository, row.repository_id)
            known = await positions_of(tx, row.repository_id)
        where = where_is(repository)
        try:
            told = await self.services.api.repository(where)
            name = str(told["default_branch"])
            tip = await self.services.api.branch(where, name)
        except (Gone, Denied):
            # removed, or empty still: a push will tell
            return Change(state="gone", writes=tuple(arm(self.services.database, row.repository_id, {})))
        values = {
            "id": repository.id,
            "full_name": str(told["full_name"]),
            "private": bool(told["private"]),
            "default_branch": name,
            "installation_id": repository.installation_id,
        }
        writes: list[Executable] = [remember_repository(self.services.database, values)]
        if (row.tip, row.name) == (tip, name):
            return Change(state="watched", due_at=now + LOOK_S, writes=tuple(writes))
        walker = await self._walk(where, tip, known)
        writes += landed(self.services.database, row.repository_id, walker.path, walker.walk())
        trouble, config = await self._config(where, tip)
        if config is not None:
            writes += arm(self.services.database, row.repository_id, _due(config, now))
            writes += await self._pushed(repository, row.tip, tip, config)
        seen = {"tip": tip, "name": name, "trouble": trouble}
        return Change(state="watched", due_at=now + LOOK_S, values=seen, writes=tuple(writes))

    async def _walk(self, where: Where, tip: str, known: Mapping[str, int]) -> Walker:
        walker = Walker(tip, known)
        most = LONGEST_WALK if known else FIRST_WALK
        if walker.arrived:
            return walker
        count = 0
        async for commit in self.services.api.commits(where, tip):
            walker.see(
                Landed(
                    sha=commit.sha,
                    parent=commit.first_parent,
                    author=commit.author,
                    subject=commit.subject,
                    committed_at=commit.committed_at,
                )
            )
            count += 1
            if walker.arrived or count >= most:
                break
        return walker

    async def _config(self, where: Where, tip: str) -> tuple[str, RepoConfig | None]:
        """The configuration at the tip; without a usable one what is wrong, and the schedules stay as they are: a night
        without numbers would be worse than one with yesterday's benchmarks."""
        text = await self.services.api.file(where, CONFIG_PATH, tip)
        config = RepoConfig() if text is None else load(text, hardware=self.services.settings.hardware)
        if isinstance(config, tuple):
            return f"line {config[0].line}: {config[0].sentence}", None
        return "", config

    async def _pushed(self, repository: Repository, before: str, tip: str, config: RepoConfig) -> list[Executable]:
        """What a push starts; several that came together are one."""
        if config.on_push is None or not before:
            return []
        try:
            call = await call_on(self.services, repository, tip, config.on_push.text, "push", since=before)
        except NothingToRun:
            return []
        trigger = f"push:{repository.id}:{tip}"
        now, request_id = self.services.clock(), self.services.new_id()
        return [new_request(self.services.database, request_id, trigger, "push", call, now)]


def _due(config: RepoConfig, now: float) -> Mapping[str, tuple[Trigger, float]]:
    times = {trigger.name: (trigger, next_time(trigger.cron, trigger.timezone, now)) for trigger in config.schedules}
    return {name: (trigger, due_at) for name, (trigger, due_at) in times.items() if due_at is not None}
