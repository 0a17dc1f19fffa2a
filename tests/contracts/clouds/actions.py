"""Runs of a workflow on the operator's own runners."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest

from runners.backends.actions import ActionsBackend
from tests.contracts.clouds import Cloud, Refusal
from tests.harness.actions import Runners, alone
from tests.harness.github_contract import rest_contract

DISPATCH, CANCEL = "/dispatches$", "/cancel$"


class Actions(Cloud):
    """One label. What a run is about stands in its name; GitHub ends it, and nobody here plays that."""

    name = "actions"
    options: ClassVar = {"label": "gpu", "patience_s": "1800"}
    zone = "gpu"
    more: ClassVar = {"trusted": True}
    late = (Refusal(set(), "no_capacity", "", "No runner with the label gpu has taken it in 30 min"),)
    late_s = 1801.0
    busy = (401, 429, 502)
    labelled = False
    last_words = "/actions/runs/"
    runners: Runners

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        contract = rest_contract()
        if contract is None:
            pytest.skip("GitHub's description was not fetched")
        async with alone(self.folder, self.clock, contract) as self.runners:
            yield

    def backend(self) -> ActionsBackend:
        return self.runners.backend(self.folder)

    def made(self) -> int:
        return len(self.runners.runs)

    async def is_empty(self) -> bool:
        return not self.runners.living

    async def settle(self) -> None:
        """Idle runners take what they can."""
        self.runners.take()

    async def later(self, seconds: float) -> None:
        self.clock.now += seconds

    def refuse(self, answer: Any) -> None:
        self.runners.fail("POST", DISPATCH, answer, times=1_000)

    def accept(self) -> None:
        self.runners.sandbox.hub.faults.clear()

    def refuse_late(self, answer: Any) -> None:
        self.runners.online = answer

    def lose_reply(self) -> None:
        self.runners.fail("POST", DISPATCH, 502, after=True)

    def fail_deletes(self, times: int) -> None:
        self.runners.fail("POST", CANCEL, 502, times=times)

    def never_boot(self) -> None:
        self.runners.online = set()

    def boot_slowly(self, seconds: float) -> None:
        self.never_boot()

    def disown(self) -> None:
        (run,) = self.runners.runs
        run.title = run.title.replace("bb-main-", "bb-other-")
