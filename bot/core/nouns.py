"""The glossary as types: what a command, a benchmark, a plan and a report are.

Everything here is a frozen value. Nothing here knows of tables, HTTP, clouds or the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bot.core.money import Limits, total_usd
from bot.core.reasons import Reason
from bot.measure.metrics import Metric
from bot.measure.outside import UNTOLD, Outside
from bot.measure.verdict import Comparison, Verdict

Side = Literal["head", "base"]
Permission = Literal["admin", "maintain", "write", "triage", "read", "none"]
OptionValue = str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A polite no: a code for machines, a sentence for the person, and what to type instead."""

    code: str
    sentence: str
    hint: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One parsed line: `line` is its 1-based number in the comment, `text` the line as typed."""

    verb: str
    targets: tuple[str, ...] = ()
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    line: int
    text: str


# ---- the repository's configuration -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A file that a benchmark reads: fetched once, checked against `sha256` (64 hex digits)."""

    name: str
    url: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What `set.NAME=` may change; numbers have inclusive bounds, texts a list of choices."""

    name: str
    default: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A scenario or an initialisation: a name and the words it adds to `{args}`."""

    name: str
    args: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A named entry of `.github/benchmark.yml`, defaults filled in. `line` is where it stands in the file.

    `notes` are Markdown sentences on what the file does not say and is taken for granted, one per metric.
    """

    name: str
    run: str
    description: str = ""
    hardware: tuple[str, ...] = ("local",)
    timeout_s: int = 3600
    groups: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    scenarios: tuple[Variant, ...] = (Variant(name="default"),)
    inits: tuple[Variant, ...] = (Variant(name="default"),)
    metrics: tuple[Metric, ...] = ()
    stop_diverged: bool = False
    notes: tuple[str, ...] = ()
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptsSource:
    """A second tree that holds the training scripts; `ref` is resolved to a commit at plan time."""

    repository: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """What runs by itself, such as on approval or on a schedule: `text` is the command line that it stands for, without
    prefix."""

    name: str
    text: str
    cron: str = ""
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoConfig:
    """`.github/benchmark.yml` of one commit, checked."""

    python: str | None = None
    setup: str = ""
    setup_inputs: tuple[str, ...] = ()
    scripts: ScriptsSource | None = None
    benchmarks: Mapping[str, Benchmark] = field(default_factory=dict)
    on_approval: Trigger | None = None
    on_push: Trigger | None = None
    on_release: Trigger | None = None
    schedules: tuple[Trigger, ...] = ()
    keep_good: int = 10
    keep_bad: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """One thing wrong in a configuration file: where (1-based), what, and what was probably meant."""

    line: int
    column: int
    where: str
    sentence: str
    hint: str = ""


# ---- the operator's hardware --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """A name that `on=` may say, as the operator defined it.

    `price_usd_per_hour` is the operator's own word, None where there is none; `listed_usd_per_hour` is then the most
    that one machine costs by the backend's list, None where that does not know it either. 0 means: not billed.
    `wait_s` is how long a request waits for a machine that the cloud does not have, `hosts` how many machines a lease
    has.
    """

    name: str
    backend: str = "local"
    price_usd_per_hour: float | None = None
    listed_usd_per_hour: float | None = 0.0
    at_once: int = 1
    wait_s: float = 1800.0
    hosts: int = 1
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def most_usd_per_hour(self) -> float | None:
        """What one machine costs at most, None where nobody knows it."""
        return self.listed_usd_per_hour if self.price_usd_per_hour is None else self.price_usd_per_hour

    @property
    def simulated(self) -> str:
        """What it only pretends to have ("tpu"); empty for hardware that is what it says."""
        return self.options.get("simulate", "")


# ---- a command and all that its handler may know ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A GitHub account and its right on the repository, as the permission API gave it."""

    id: int
    login: str
    kind: Literal["User", "Bot", "Organization"] = "User"
    permission: Permission = "none"

    @property
    def may_write(self) -> bool:
        """Write, maintain or admin: may allow commits, and its own commits are trusted."""
        return self.permission in ("admin", "maintain", "write")

    @property
    def may_run(self) -> bool:
        """Triage and above: may start benchmarks."""
        return self.may_write or self.permission == "triage"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request as far as commands need it. `from_fork` is True also when the head repository is unknown."""

    repository_id: int
    full_name: str
    number: int
    author: Person
    head_sha: str
    base_ref: str
    from_fork: bool
    title: str = ""
    open: bool = True
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A command with everything a handler may know: who, where, which commits, which configuration.

    `head_sha` is the head when the comment was written (from our own log), `config` None when the base has no file.
    `resolved` are the benchmarks that the targets name, `head_only` those among them that the base does not have;
    `allowed_shas` the head commits that somebody with write right allowed; `scripts_sha` the commit of the second tree.
    """

    command: Command
    sender: Person
    pull: PullRequest
    head_sha: str
    base_sha: str
    baseline: str
    config: RepoConfig | None
    config_sha: str
    hardware: Mapping[str, Hardware]
    resolved: tuple[str, ...] = ()
    head_only: tuple[str, ...] = ()
    scripts_sha: str = ""
    allowed_shas: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    changed_paths: tuple[str, ...] = ()


# ---- a plan ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One execution on a lease. `position` counts from 0 in the order of execution; `pair` from 0, None if unpaired."""

    side: Side
    seed: int
    position: int
    pair: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLease:
    """One machine for one benchmark in one variant: its runs in order and its limits.

    `estimate_usd` is the most that it may cost, None where the price of its hardware is not known.
    """

    benchmark: str
    scenario: str
    init: str
    hardware: str
    runs: tuple[PlannedRun, ...]
    timeout_s: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    hosts: int = 1
    estimate_usd: float | None = 0.0
    simulated: str = ""  # what the hardware only pretends to have
    stop_diverged: bool = False  # a run is stopped when one of its metrics is no number any more
    until_decided: bool = False  # its later seeds are run only while they could still decide something
    reused: int = 0  # base runs of the history that stand in for runs of the base on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a command would do: its leases, the names its targets resolve to, and the estimated cost."""

    targets: tuple[str, ...]
    leases: tuple[PlannedLease, ...]

    @property
    def estimate_usd(self) -> float | None:
        """The most that it may cost in US dollars, None where the price of some hardware is not known."""
        return total_usd(lease.estimate_usd for lease in self.leases)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The hardware whose price nobody knows."""
        return tuple(dict.fromkeys(lease.hardware for lease in self.leases if lease.estimate_usd is None))


# ---- a report -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A name and an absolute URL, or a path below the bot's address while no request has been made."""

    name: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run as told to people. `seconds` is the wall time of the training command, None while it has not ended;
    `outside` is what else its agent saw.

    `state` is queued, running, done, failed or cancelled; `log_tail` the last lines of output of a failed run,
    already free of secrets and control characters but not yet of Markdown.
    """

    id: str
    side: Side
    seed: int
    position: int
    commit: str
    state: str
    seconds: float | None = None
    reason: Reason | None = None
    log_tail: str = ""
    imported: str = ""
    links: tuple[Link, ...] = ()
    outside: Outside = UNTOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkReport:
    """One lease as told to people: the comparisons of its metrics, its runs, and what was noticed.

    `phase` is a short present-tense text while it is not final ("waiting for local", "run 2 of 4: base, seed 1").
    """

    lease_id: str
    benchmark: str
    scenario: str
    init: str
    hardware: str
    verdict: Verdict | None
    comparisons: tuple[Comparison, ...] = ()
    runs: tuple[RunReport, ...] = ()
    reason: Reason | None = None
    phase: str = ""
    notes: tuple[str, ...] = ()
    machine: str = ""
    cost_usd: float = 0.0
    seconds: float = 0.0
    curves_url: str = ""
    simulated: str = ""  # what its hardware only pretends to have
    repeats: str = ""  # the lease whose suspected regression it repeats on another machine
    repeated: bool = False  # a second lease was judged together with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a request has to say; comment, check run and page are renderings of this one value.

    `state` is queued, running, done or cancelled. `verdict` stands only when done. `outdated_by` is the newer head
    when the pull request has moved on. `next_commands` are complete lines to type. `exact` tells how `baseline` was
    found ("merge-base of main"). `targets` are the words that named the benchmarks, as typed. `waits` tells what a
    queued request waits for before anything is started, `confirmed_by` who gave the word. `estimate_usd` is the most
    that it may cost, None where that is not known. Times are seconds since the epoch.
    """

    request_id: str
    kind: str
    full_name: str
    number: int
    command: str
    requester: str
    head_sha: str
    base_sha: str
    config_sha: str
    baseline: str
    state: str
    verdict: Verdict | None
    benchmarks: tuple[BenchmarkReport, ...]
    links: tuple[Link, ...] = ()
    reason: Reason | None = None
    outdated_by: str = ""
    next_commands: tuple[str, ...] = ()
    reproduce: str = ""
    notes: tuple[str, ...] = ()
    created_at: float = 0.0
    finished_at: float | None = None
    estimate_usd: float | None = 0.0
    cost_usd: float = 0.0
    waits: str = ""
    confirmed_by: str = ""
    targets: tuple[str, ...] = ()
