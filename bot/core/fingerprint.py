"""What must be equal before samples of different commits may be compared: a benchmark as it was run, and where.

What changes with the commits themselves (their dependencies, their setup) is no part of it: that is what is measured.
"""

import hashlib
from dataclasses import asdict, dataclass

import msgspec

from bot.core.nouns import Hardware, PlannedLease, RepoConfig
from bot.core.orders import command_of
from bot.measure.metrics import Metric

# options of hardware that say where a machine stands and what it is allowed, not what it is
_ELSEWHERE = frozenset(
    {"zones", "zone", "region", "network", "subnetwork", "provisioning", "project", "namespace", "queue", "labels"}
)
# what a metric may change without becoming another quantity
_OPINIONS = frozenset({"better", "tolerance", "noise", "target", "gate", "confirm", "scale", "per", "kind"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A benchmark in one variant on one kind of machine. `run` is its command with the words of the variant, `inputs`
    the hashes of its data by name, `hardware` the operator's name and what it stood for."""

    benchmark: str
    scenario: str
    init: str
    run: str
    parameters: tuple[tuple[str, str], ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    hardware: tuple[str, ...] = ()
    hosts: int = 1
    python: str = ""


def fingerprint_of(config: RepoConfig, lease: PlannedLease, hardware: Hardware | None) -> Fingerprint:
    """The fingerprint of a lease; `config` must hold its benchmark."""
    benchmark = config.benchmarks[lease.benchmark]
    return Fingerprint(
        benchmark=lease.benchmark,
        scenario=lease.scenario,
        init=lease.init,
        run=command_of(benchmark, lease),
        parameters=tuple(sorted(lease.parameters.items())),
        inputs=tuple(sorted((item.name, item.sha256) for item in benchmark.inputs)),
        hardware=(lease.hardware, *_machine(hardware)),
        hosts=lease.hosts,
        python=config.python or "",
    )


def series_id(repository_id: int, fingerprint: Fingerprint, metric: Metric) -> str:
    """The name of the series of a metric: 26 hex digits, equal for everything that may be compared."""
    quantity = {key: value for key, value in asdict(metric).items() if key not in _OPINIONS}
    said = msgspec.json.encode((repository_id, fingerprint, quantity), order="deterministic")
    return hashlib.sha256(said).hexdigest()[:26]


def _machine(hardware: Hardware | None) -> tuple[str, ...]:
    if hardware is None:
        return ()
    kept = sorted(f"{key}={value}" for key, value in hardware.options.items() if key not in _ELSEWHERE)
    return (hardware.backend, *kept)
