"""The result of one run as a record that others can read: JSON, a row of CSV, an entry of a model card.

What is not known is null, never a guess. The fields are those of `Record`.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML

from bot.core.environments import Environment
from bot.core.records import RunFacts
from bot.measure.outside import known
from bot.measure.picking import find_curve, measured
from bot.measure.readers import read_folder
from bot.measure.reading import NOTHING, Reading
from bot.measure.weights import Weights

SCHEMA = 1
_SOFTWARE = ("python", "driver", "packages_sha256")
_LATER = ("exit_status", "checkout_s", "setup_s", "inputs_s", "peak_device_bytes")


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """An input of the benchmark, which was checked against `sha256` before it was read."""

    name: str
    url: str
    sha256: str


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of the run in `unit`. `step` is where the value stands, `pick` how it was found among `points` values;
    `why` says why there is none."""

    name: str
    tag: str | None
    unit: str
    pick: str
    value: float | None
    step: int | None
    points: int | None
    why: str | None


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """Where it ran: the operator's `name` for it, `type`, `zone` and `provisioning` as the cloud calls them, and how
    many devices each of how many hosts has. `simulated` is what it only pretends to have."""

    name: str
    backend: str
    type: str | None
    zone: str | None
    provisioning: str | None
    device: str | None
    devices: int | None
    hosts: int
    simulated: str | None


class Software(msgspec.Struct, frozen=True, kw_only=True):
    """What it ran in, as `bot.core.environments.Environment` says; null where that is not known. `packages_sha256` is
    the hash of the lines of `packages`, each with its end."""

    python: str | None
    platform: str | None
    driver: str | None
    devices: tuple[str, ...]
    frameworks: Mapping[str, str]
    cuda: Mapping[str, str]
    packages: tuple[str, ...]
    packages_sha256: str


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the run left. `size` in bytes; `sha256` is null until it was confirmed."""

    path: str
    size: int
    sha256: str | None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What the files with values were like, as `bot.measure.reading.Health` says."""

    files: int
    records: int
    bad_records: int
    tail_bytes: int
    dropped_by_resume: int
    non_finite: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `seconds`, `exit_status`, `peak_host_bytes` and `peak_device_bytes` (the most that one device held) are
    those of the training command, `checkout_s`, `setup_s` and `inputs_s` what came before it, `weights_count` and
    `weights_bytes` those of its last checkpoint, `cost_usd` that of the whole lease, `started_at` in seconds since the
    epoch."""

    schema: int
    run: str
    repository: str
    pull_request: int | None
    commit: str
    side: str
    command: str
    requester: str
    benchmark: str
    scenario: str
    init: str
    parameters: Mapping[str, str]
    seed: int
    state: str
    reason: str | None
    datasets: tuple[Dataset, ...]
    metrics: tuple[Value, ...]
    hardware: Hardware
    environment: Software | None
    started_at: float | None
    seconds: float | None
    exit_status: int | None
    checkout_s: float | None
    setup_s: float | None
    inputs_s: float | None
    peak_host_bytes: int | None
    peak_device_bytes: int | None
    weights_count: int | None
    weights_bytes: int | None
    cost_usd: float
    artifacts: tuple[File, ...]
    health: Health | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the files of a run hold, as far as they are here."""

    reading: Reading | None
    weights: Weights | None


def look(logs: Path, weights: Weights | None) -> Seen:
    """Read what a run has left. Reads files, so it belongs in a thread."""
    return Seen(reading=read_folder(logs) if logs.is_dir() else None, weights=weights)


def record(facts: RunFacts, seen: Seen) -> Record:
    """The record of one run."""
    planned, weights = facts.planned, seen.weights
    return Record(
        schema=SCHEMA,
        run=facts.run_id,
        repository=facts.full_name,
        pull_request=facts.number or None,
        commit=facts.commit,
        side=facts.side,
        command=facts.command,
        requester=facts.requester,
        benchmark=planned.benchmark,
        scenario=planned.scenario,
        init=planned.init,
        parameters=dict(planned.parameters),
        seed=facts.seed,
        state=facts.state,
        reason=facts.reason or None,
        datasets=tuple(Dataset(name=one.name, url=one.url, sha256=one.sha256) for one in facts.inputs),
        metrics=_values(facts, seen),
        hardware=_hardware(facts),
        environment=_software(facts.environment),
        started_at=facts.started_at,
        seconds=facts.outside.seconds,
        exit_status=facts.outside.exit_status,
        checkout_s=facts.outside.checkout_s,
        setup_s=facts.outside.setup_s,
        inputs_s=facts.outside.inputs_s,
        peak_host_bytes=facts.outside.peak_rss_bytes,
        peak_device_bytes=facts.outside.peak_device_bytes,
        weights_count=weights.numbers if weights else None,
        weights_bytes=weights.size if weights else None,
        cost_usd=facts.cost_usd,
        artifacts=tuple(File(path=one.path, size=one.size, sha256=one.sha256 or None) for one in facts.artifacts),
        health=_health(seen.reading),
    )


def to_json(records: Sequence[Record]) -> str:
    """A list of records."""
    return msgspec.json.format(msgspec.json.encode(records), indent=2).decode()


def to_csv(records: Sequence[Record]) -> str:
    """One row a run behind a header: what it was, then each metric that any of them has as `NAME` or `NAME (UNIT)`.

    Numbers have no separators but the point; what is unknown is empty.
    """
    plain = ("run", "repository", "pull_request", "commit", "side", "benchmark", "scenario", "init", "seed", "state")
    # new ones stand behind those that were there first: what reads columns by their place goes on
    numbers = ("seconds", "peak_host_bytes", "weights_count", "weights_bytes", "cost_usd", *_LATER)
    metrics = list(dict.fromkeys(_column(value) for one in records for value in one.metrics))
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([*plain, "hardware", "machine_type", *numbers, *_SOFTWARE, *metrics])
    for one in records:
        values = {_column(value): value.value for value in one.metrics}
        cells = [getattr(one, name) for name in plain]
        cells += [one.hardware.name, one.hardware.type, *(getattr(one, name) for name in numbers)]
        cells += [getattr(one.environment, name) if one.environment else None for name in _SOFTWARE]
        rows.writerow(["" if cell is None else cell for cell in (*cells, *(values.get(name) for name in metrics))])
    return out.getvalue()


def to_model_index(records: Sequence[Record]) -> str:
    """The `model-index` of a model card (YAML), one model for each benchmark with its scenario and initialisation.

    Values that were not measured are left out. `verified` is false: that word is the hub's own.
    """
    models: dict[str, list[dict[str, Any]]] = {}
    for one in records:
        metrics = [
            {"type": value.name, "value": value.value, "name": _column(value), "verified": False}
            for value in one.metrics
            if value.value is not None
        ]
        if not metrics:
            continue
        # a card needs a data set's name; without a declared input that of the benchmark is the best there is
        data = [{"type": each.name, "name": each.name, "revision": each.sha256} for each in one.datasets]
        dataset = data[0] if data else {"type": one.benchmark, "name": one.benchmark}
        args = {"commit": one.commit, "seed": one.seed, "hardware": one.hardware.name, **one.parameters}
        variant = [name for name in (one.scenario, one.init) if name not in ("", "default")]
        name = "-".join((one.benchmark, *variant))
        results = models.setdefault(name, [])
        results.append({"task": {"type": "other"}, "dataset": dataset | {"args": args}, "metrics": metrics})
    out = io.StringIO()
    YAML(typ="safe", pure=True).dump(
        {"model-index": [{"name": name, "results": results} for name, results in models.items()]}, out
    )
    return out.getvalue()


def _column(value: Value) -> str:
    return f"{value.name} ({value.unit})" if value.unit else value.name


def _values(facts: RunFacts, seen: Seen) -> tuple[Value, ...]:
    builtins = known(facts.outside, seen.weights)
    found = []
    for metric in facts.metrics:
        there = seen.reading is not None or metric.builtin is not None
        told = measured(metric, seen.reading or NOTHING, builtins) if there else None
        curve = find_curve(metric, seen.reading or NOTHING) if told and told.value is not None else None
        found.append(
            Value(
                name=metric.name,
                tag=metric.tag,
                unit=metric.unit,
                pick=metric.builtin or metric.picked,
                value=told.value if told else None,
                step=told.step if told else None,
                points=len(curve) if curve is not None else None,
                why=(told.sentence if told.value is None else None) if told else "No logs of this run are here.",
            )
        )
    return tuple(found)


def _hardware(facts: RunFacts) -> Hardware:
    offer, planned = facts.offer, facts.planned
    return Hardware(
        name=planned.hardware,
        backend=facts.backend,
        type=(offer.machine_type or None) if offer else None,
        zone=(offer.zone or None) if offer else None,
        provisioning=offer.provisioning if offer else None,
        device=(offer.device or None) if offer else None,
        devices=offer.devices if offer else None,
        hosts=planned.hosts,
        simulated=planned.simulated or None,
    )


def _software(found: Environment | None) -> Software | None:
    if found is None:
        return None
    return Software(
        python=found.python or None,
        platform=found.platform or None,
        driver=found.driver or None,
        devices=found.devices,
        frameworks=found.frameworks,
        cuda=found.cuda,
        packages=found.packages,
        packages_sha256=found.packages_sha256,
    )


def _health(reading: Reading | None) -> Health | None:
    if reading is None:
        return None
    health = reading.health
    return Health(
        files=health.files,
        records=health.records,
        bad_records=health.bad_records,
        tail_bytes=health.tail_bytes,
        dropped_by_resume=health.dropped_by_resume,
        non_finite=health.non_finite,
    )
