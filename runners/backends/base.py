"""What every backend must do. A backend is one file beside this one that defines one subclass of `Backend`.

All verbs are idempotent and may be repeated after a crash: the bot writes down what it wants before it calls.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from runners.spec import GitHubCaller, HostPool, MachineOrder, Offer, Sighting


class BackendError(Exception):
    """A backend's no. `code` is a reason code (no_capacity, quota, config, ...), `sentence` is for people.

    `scope` is the one of the offer's scopes that is to be left alone for a while; empty: this offer alone.
    """

    def __init__(self, code: str, sentence: str, scope: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.scope = scope


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """What a backend is built from: the deployment's id, a folder of its own, its operator's table, and a clock.

    `github` is None where the bot has no App.
    """

    deployment: str
    folder: Path
    clock: Callable[[], float]
    options: Mapping[str, str]
    github: GitHubCaller | None = None
    pool: HostPool | None = None


class Backend(ABC):
    """Where machines come from."""

    name: ClassVar[str]
    # False: its machines are the operator's own, and cost nothing unless the operator says what they do
    billed: ClassVar[bool] = True

    def __init__(self, settings: BackendSettings) -> None:
        self.settings = settings

    @abstractmethod
    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        """Concrete offers for one hardware entry of the operator, best first."""

    @abstractmethod
    async def create(self, order: MachineOrder) -> None:
        """Start the machine; a second call with the same name and attempt changes nothing.

        A cloud may accept the order and fail later: `observe` then says absent or stopped, with the code.
        Raises BackendError.
        """

    @abstractmethod
    async def observe(self, name: str, zone: str) -> Sighting:
        """What is there now; a machine that is not there is `absent`."""

    @abstractmethod
    async def delete(self, name: str, zone: str) -> None:
        """Make it go away; a machine that is not there is fine. The bot repeats this until it observes `absent`."""

    @abstractmethod
    async def list_owned(self) -> tuple[Sighting, ...]:
        """Every machine of this deployment, from the machines' own labels, not from the bot's memory."""

    @abstractmethod
    async def diagnose(self, name: str, zone: str) -> str:
        """The last words of a machine that did not behave, for the operator; empty when there are none."""

    async def doubts(self, identity: str, name: str, audience: str) -> str:
        """Why `identity`, made for `audience`, does not prove that its bearer is the machine `name`; empty: it does.

        For clouds that give machines an identity of their own; elsewhere a machine has the token of its order.
        """
        return f"machines of {self.name} claim with the token of their order"

    def clear(self) -> None:  # noqa: B027 # most keep nothing
        """Remove what is kept on this host from lease to lease; for a deployment that ends for good."""

    def isolates(self) -> str:
        """Empty when code of strangers is kept from the bot's files here, else the sentence that says why not."""
        return ""
