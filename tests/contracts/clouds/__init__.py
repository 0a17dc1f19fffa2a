"""The stand-ins of all backends as the one contract suite drives them: a module here with one `Cloud` for each.

What a cloud cannot do, or what cannot happen to it, its class leaves out; the suite asks only for what is there.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar

from runners.backends.base import Backend
from runners.spec import MachineOrder
from tests.harness.world import Clock

NAME = "bb-main-kfzrtnnpvreex5dktrwozzl6qv-0"
LEASE = "kfzrtnnpvreex5dktrwozzl6qv"


async def first(backend: Backend, options: Mapping[str, str], **more: Any) -> MachineOrder:
    """An order of the machine NAME for an hour, by the best offer."""
    offer, *_ = await backend.offers(options)
    wanted = {
        "name": NAME,
        "deployment": backend.settings.deployment,
        "lease_id": LEASE,
        "server_url": "https://bench.example.org",
        "token": "token-1",
        "deadline_at": backend.settings.clock() + 3600,
        "offer": offer,
        "options": options,
    }
    return MachineOrder(**{**wanted, **more})


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the stand-in answers, in its own terms, and what the backend makes of it."""

    answer: Any
    code: str
    scope: str
    said: str


class Cloud(ABC):
    """One kind of machine of one backend. `options` are the hardware's, `more` what else an order of it says, `zone` is
    where its first offer is.

    `early` are refusals of an order, `late` those that come `late_s` after it was accepted, `busy` answers that ask to
    come again. `ends_itself`: a machine past its deadline goes without the bot, or is found by it (None: neither is
    simulated). `labelled`: its machines tell their lease and deadline. `last_words` stand in its diagnosis.
    """

    name: ClassVar[str]
    options: ClassVar[Mapping[str, str]]
    zone: ClassVar[str]
    early: ClassVar[tuple[Refusal, ...]] = ()
    late: ClassVar[tuple[Refusal, ...]] = ()
    late_s: ClassVar[float] = 6.0
    busy: ClassVar[tuple[Any, ...]] = ()
    ends_itself: ClassVar[bool | None] = None
    labelled: ClassVar[bool] = True
    more: ClassVar[Mapping[str, Any]] = {}
    last_words: ClassVar[str] = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock: Any = Clock()

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[None]:
        """Serve; at the end no call may have been wrong."""

    @abstractmethod
    def backend(self) -> Backend:
        """A fresh backend, as a new process would build it."""

    @abstractmethod
    def made(self) -> int:
        """How many orders were taken."""

    @abstractmethod
    async def is_empty(self) -> bool:
        """Nothing is left that costs money or holds quota."""

    async def settle(self) -> None:  # noqa: B027 # mostly the next call finds that it has
        """What happens by itself without that time passes has happened."""

    async def order(self, backend: Backend, attempt: int = 1) -> MachineOrder:
        """An order for the best offer."""
        return await first(backend, self.options, attempt=attempt, **self.more)

    # ---- what can happen --------------------------------------------------------------------------------------------

    async def later(self, seconds: float) -> None:
        """Time passes."""
        raise NotImplementedError

    def refuse(self, answer: Any) -> None:
        """Answer so when something is ordered, until `accept`."""
        raise NotImplementedError

    def accept(self) -> None:
        """Take orders again."""
        raise NotImplementedError

    def refuse_late(self, answer: Any) -> None:
        """Take orders, and end them so."""
        raise NotImplementedError

    def lose_reply(self) -> None:
        """The next order is taken, but its answer does not arrive."""
        raise NotImplementedError

    def fail_deletes(self, times: int) -> None:
        """So many deletions fail."""
        raise NotImplementedError

    def never_boot(self) -> None:
        """Machines are made, and do not come to life."""
        raise NotImplementedError

    def boot_slowly(self, seconds: float) -> None:
        """Machines take so long to come to life."""
        raise NotImplementedError

    def delete_slowly(self, seconds: float) -> None:
        """Machines take so long to go."""
        raise NotImplementedError

    def preempt(self) -> None:
        """Take the machine back."""
        raise NotImplementedError

    def disown(self) -> None:
        """The machine is another deployment's."""
        raise NotImplementedError

    def distrust(self) -> None:
        """The credentials of backends that exist already are not known."""
        raise NotImplementedError

    async def go_away(self) -> None:
        """Nobody answers any more."""
        raise NotImplementedError


class Loopback(Cloud):
    """A stand-in that listens on loopback. All have faults by the same names."""

    service: Any

    @abstractmethod
    def build(self) -> Any:
        """The stand-in, which does not listen yet."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        self.service = self.build()
        await self.service.start()
        try:
            yield
        finally:
            await self.service.stop()
        assert self.service.violations == []

    def backend(self) -> Backend:
        made: Backend = self.service.backend(self.folder)
        return made

    async def later(self, seconds: float) -> None:
        self.clock.now += seconds

    def lose_reply(self) -> None:
        self.service.faults.lost_replies = 1

    def fail_deletes(self, times: int) -> None:
        self.service.faults.failing_deletes = times

    def never_boot(self) -> None:
        self.service.faults.never_boots = True

    def boot_slowly(self, seconds: float) -> None:
        self.service.boot_s = seconds

    def delete_slowly(self, seconds: float) -> None:
        self.service.delete_s = seconds

    async def go_away(self) -> None:
        await self.service.stop()


class ByZone(Loopback):
    """One whose refusals are kept by zone, and whose key is a file."""

    key: ClassVar[str]

    def refuse(self, answer: Any) -> None:
        self.service.faults.early[self.zone] = answer

    def accept(self) -> None:
        self.service.faults.early.clear()

    def refuse_late(self, answer: Any) -> None:
        self.service.faults.late[self.zone] = answer

    def preempt(self) -> None:
        self.service.preempt(NAME)

    def distrust(self) -> None:
        (self.folder / self.key).write_text(json.dumps(self.service.credentials(known=False)))


def all_clouds() -> tuple[type[Cloud], ...]:
    """Every class in a module of this folder that has a name."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    return tuple(
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type) and issubclass(thing, Cloud) and thing.__module__ == module.__name__
    )
