"""The edges of the process, handed to workers and to the web: everything that is not a pure function of rows."""

import secrets
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import insert

from bot.artifacts.base import ArtifactStore
from bot.github.client import GitHub
from bot.settings import Settings
from bot.store.database import Database
from bot.store.tables import Incident
from runners.backends.base import Backend


def random_id() -> str:
    """An id that cannot be guessed: 128 bits, 26 characters of a-z and 2-7, so that it may stand in machine names."""
    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    return "".join(secrets.choice(alphabet) for _ in range(26))


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`clock` gives seconds since the epoch. `wake` is called after rows were poked, to spare waiting for a tick."""

    settings: Settings
    database: Database
    github: GitHub | None
    backends: Mapping[str, Backend]
    artifacts: ArtifactStore
    clock: Callable[[], float]
    new_id: Callable[[], str] = field(default=random_id)
    wake: Callable[[], None] = field(default=lambda: None)

    @property
    def api(self) -> GitHub:
        """GitHub, for those who only run when there is one."""
        if self.github is None:
            raise RuntimeError("this bot runs without GitHub")
        return self.github

    async def incident(self, where: str, error: BaseException) -> str:
        """Keep a bug for the operator; returns the reference that public texts may show."""
        reference = self.new_id()[:10]
        text = "".join(traceback.format_exception(error))
        async with self.database.write() as tx:
            await tx.execute(
                insert(Incident).values(id=reference, happened_at=self.clock(), where=where, traceback=text[-20_000:])
            )
        return reference
