"""What the bot orders from machines: the work of a lease, and the machine it needs. Imports nothing of the bot.

`Work` travels to the agent as JSON inside the answer to a claim (see `runners.protocol`), so it holds only plain
values; its field names are the message's keys.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A commit to check out: a git URL (below the bot's own address, or a local path) and 40 hex digits."""

    url: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SideWork:
    """One side of a comparison: the repository, and the second tree with the scripts if there is one."""

    source: Source
    scripts: Source | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWork:
    """A file to fetch once and check: `sha256` is 64 hex digits."""

    name: str
    url: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file that a run had shipped from an earlier machine: path below the run, bytes, 64 hex digits."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWork:
    """One training command.

    `command` is the repository's template; the agent fills `{inputs.NAME}` in, all else is in `words` and `raw`
    (see `protocol.fill`). `env` are the documented BENCHBOT_ variables that the bot knows. `kept` is what it goes on
    from when an earlier machine was taken away. Before a run that `asks` the agent finds out whether it and all after
    it are still wanted.
    """

    id: str
    side: str
    seed: int
    command: str
    words: Mapping[str, str]
    raw: Mapping[str, str]
    env: Mapping[str, str]
    timeout_s: int
    kept: tuple[KeptFile, ...] = ()
    asks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """The devices that each host of a lease has: `kind` is cuda, rocm, xpu or tpu."""

    kind: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All that one lease does, in order. `python` is a version such as "3.11", None for the machine's own.

    `interruptible`: the machine may be taken away, so checkpoints are shipped while the training goes on.
    """

    sides: Mapping[str, SideWork]
    runs: tuple[RunWork, ...]
    setup: str = ""
    setup_inputs: tuple[str, ...] = ()
    python: str | None = None
    inputs: tuple[InputWork, ...] = ()
    setup_timeout_s: int = 1800
    interruptible: bool = False
    devices: DeviceWork | None = None
    hosts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One concrete thing that a backend could give now.

    `price_usd_per_hour` is its list price, None where the backend knows none.
    `provisioning` is standard, spot, flex-start or reserved. `scopes` name what it shares with other offers, such as
    its zone: a refusal names the scope that is to be left alone for a while. The order of a `queued` offer may stand
    in a queue of the cloud for long before there is a machine. `device` is cuda, rocm, xpu or tpu, and `devices` how
    many of them frameworks must see there. With `one_order` the order of the first of several hosts brings them
    all, and its deletion takes them all; the price is that of one host.
    """

    backend: str
    zone: str = ""
    machine_type: str = ""
    price_usd_per_hour: float | None = None
    provisioning: str = "standard"
    scopes: tuple[str, ...] = ()
    queued: bool = False
    device: str = ""
    devices: int = 0
    one_order: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOrder:
    """A machine to create.

    `name` is legal in every cloud (at most 63 of a-z, 0-9 and -) and unique; creating it twice makes one. `attempt`
    counts the offers that were tried under this name. The machine must be gone by `deadline_at` (seconds since the
    epoch) whatever happens to the bot. `token` is what its agent claims the lease with at `server_url`,
    as its host number `member`.
    """

    name: str
    deployment: str
    lease_id: str
    server_url: str
    token: str
    deadline_at: float
    offer: Offer
    attempt: int = 1
    member: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    # False: the commits come from somebody without write right, and the backend must isolate their code or refuse
    trusted: bool = False


def order_name(machine: str) -> str:
    """The name that all hosts of one lease share: a host of several has its number behind it."""
    return re.sub(r"^(.+-[a-z2-7]{26}-\d+)-\d+$", r"\1", machine)


def host_number(machine: str) -> int | None:
    """Which of several hosts a machine is; None for the only one."""
    return None if order_name(machine) == machine else int(machine.rpartition("-")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What the backend says of a machine: `state` is absent, waiting (the order stands in a queue), starting, running
    or stopped.

    `code` and `scope` say why it is absent or stopped where the backend knows, as a `BackendError` would.
    """

    name: str
    state: str
    zone: str = ""
    lease_id: str = ""
    deadline_at: float | None = None
    evidence: str = ""
    code: str = ""
    scope: str = ""


class GitHubRefusal(Exception):
    """GitHub's no to one call: its HTTP status, and its sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class GitHubCaller(Protocol):
    """GitHub's REST API for backends that live there, with the rights of the bot's App.

    `repository` is "owner/name"; `path` is below it, such as /actions/runs/7. Returns GitHub's JSON. Raises
    GitHubRefusal for a no that stays a no, and an OSError for what may pass.
    """

    async def get(self, repository: str, path: str) -> Any:
        """Read something."""

    async def post(self, repository: str, path: str, body: Mapping[str, Any]) -> Any:
        """Change something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHost:
    """A host of the operator's own, as the bot last heard of it.

    `state` is free, given (it has not asked since), sent (it has not said that it has it), running, stopped, or leaving
    (it shall end and remove what it holds). In all but the first it holds `order`, since `used_at`; `code` and `said`
    tell what became of that. `kinds` counts its devices by cuda, rocm, xpu and tpu. `trouble` is why they cannot be
    used now, `quarantined` why the host must not be used.
    """

    name: str
    labels: frozenset[str]
    devices: str
    kinds: Mapping[str, int]
    isolates: bool
    state: str
    seen_at: float
    used_at: float
    trouble: str = ""
    quarantined: str = ""
    order: MachineOrder | None = None
    code: str = ""
    said: str = ""


class HostPool(Protocol):
    """The bot's memory of the hosts that have enrolled: they ask the bot, the bot cannot call them."""

    async def hosts(self) -> tuple[PoolHost, ...]:
        """All of them, by name."""

    async def give(self, host: str, order: MachineOrder) -> bool:
        """Let a host have an order; False when it cannot take one now. Given again it changes nothing."""

    async def take_back(self, host: str, name: str) -> None:
        """Let a host end and remove an order; one that it does not hold is fine."""
