"""What every backend must do. A backend is one file beside this one that defines one subclass of `Backend`.

All verbs are idempotent and may be repeated after a crash: the bot writes down what it wants before it calls.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

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


Level = Literal["ok", "warning", "fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How one thing is that a machine depends on, for the operator.

    `about` names it in a few words, `sentence` says how it is, `advice` what to do next: a command or a setting.
    """

    about: str
    level: Level
    sentence: str
    advice: str = ""


def finding_of(about: str, error: BackendError | OSError, advice: str = "") -> Finding:
    """The fault that an error of a backend is; one that may pass says so."""
    if isinstance(error, BackendError):
        return Finding(about=about, level="fault", sentence=error.sentence, advice=advice)
    sentence = f"{str(error) or type(error).__name__}."
    return Finding(about=about, level="fault", sentence=sentence, advice=advice or "Check the network, and try again.")


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

    async def check(self, hardware: Mapping[str, Mapping[str, str]]) -> tuple[Finding, ...]:
        """What would keep an order from becoming a machine, for `benchbot doctor`. Changes nothing, raises nothing.

        `hardware` holds the operator's options of each hardware of this backend, by its name.
        """
        found, _ = await self.check_offers(hardware)
        return (*found, await self.check_machines())

    async def check_offers(
        self, hardware: Mapping[str, Mapping[str, str]]
    ) -> tuple[list[Finding], dict[str, tuple[Offer, ...]]]:
        """What each hardware offers, and what is wrong with the options of those that are left out."""
        found, offers = [], {}
        for name, options in hardware.items():
            about, advice = f"hardware {name}", f"Change [hardware.{name}] in benchbot.toml."
            try:
                offered = await self.offers(options)
            except (BackendError, OSError) as error:
                found.append(finding_of(about, error, advice))
                continue
            if not offered:
                advice = f"Say in [hardware.{name}] where its machines may stand, such as `zones`."
                found.append(Finding(about=about, level="fault", sentence="It offers no machine.", advice=advice))
                continue
            offers[name] = offered
            found.append(Finding(about=about, level="ok", sentence=_told(offered)))
        return found, offers

    async def check_machines(self) -> Finding:
        """Whether the deployment's machines can be listed, which shows that there is a way there."""
        try:
            owned = await self.list_owned()
        except (BackendError, OSError) as error:
            advice = f"See that what benchbot.toml says of {self.name} is right, and that it can be reached from here."
            return finding_of("machines", error, advice)
        there = ", ".join(sorted(seen.name for seen in owned)) or "none"
        return Finding(about="machines", level="ok", sentence=f"Machines of this deployment: {there}.")

    def clear(self) -> None:  # noqa: B027 # most keep nothing
        """Remove what is kept on this host from lease to lease; for a deployment that ends for good."""

    def isolates(self) -> str:
        """Empty when code of strangers is kept from the bot's files here, else the sentence that says why not."""
        return ""


def _told(offers: tuple[Offer, ...]) -> str:
    """Offers in words, best first."""
    shown = [
        " ".join((offer.machine_type, offer.provisioning, f"in {offer.zone}" if offer.zone else "")).strip()
        for offer in offers
        if offer.machine_type
    ]
    return f"It offers, best first: {', '.join(shown)}." if shown else "It can be ordered."
