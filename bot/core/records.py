"""What is known of a run beside its values: who asked for what, where it ran, what it read and what it left."""

from dataclasses import dataclass

import msgspec

from bot.core.environments import Environment
from bot.core.nouns import Input, PlannedLease, Side
from bot.measure.metrics import Metric
from bot.measure.outside import Outside
from runners.spec import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptArtifact:
    """A file that a run left. `size` in bytes; `sha256` is empty until it was confirmed."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run that has ended, or goes on. `number` is that of the pull request, 0 without one; times are seconds since
    the epoch, `outside` is what its agent saw, `environment` what it ran in, `cost_usd` that of the whole lease."""

    run_id: str
    full_name: str
    number: int
    command: str
    requester: str
    commit: str
    side: Side
    seed: int
    state: str
    reason: str
    planned: PlannedLease
    metrics: tuple[Metric, ...]
    inputs: tuple[Input, ...]
    backend: str
    machine: str
    offer: Offer | None
    started_at: float | None
    outside: Outside
    environment: Environment | None
    cost_usd: float
    artifacts: tuple[KeptArtifact, ...]


class SampleLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One value of one run. `value` is in the unit of the metric, `commit` 40 hex digits, `machine` what tells one
    machine from another, `at` when it was measured, in seconds since the epoch."""

    benchmark: str
    metric: str
    commit: str
    value: float
    scenario: str = "default"
    init: str = "default"
    hardware: str = "local"
    seed: int = 0
    machine: str = ""
    at: float = 0.0
