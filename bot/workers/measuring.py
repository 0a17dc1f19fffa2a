"""From the files that runs shipped to comparisons: read, pick, judge. No rows are written here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.core.environments import differences
from bot.core.fingerprint import fingerprint_of, series_id
from bot.core.nouns import Call, PlannedLease
from bot.measure.metrics import Measurement, Metric, Sample
from bot.measure.noise import Classes, Prior, prior_of
from bot.measure.outside import OF_A_SIDE, OF_FAILED, known
from bot.measure.patterns import expand
from bot.measure.picking import measured
from bot.measure.readers import Reading, read_folder
from bot.measure.reading import NOTHING
from bot.measure.verdict import Comparison, Evidence, judge
from bot.measure.weights import Weights
from bot.store.codec import load
from bot.store.records import environment_of, outside_of
from bot.store.tables import Run
from runners.protocol import LOG_FOLDER

MOST_LINES = 6


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison per metric, several for a pattern that fits several curves, and what was noticed while reading."""

    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    run: Run
    reading: Reading | None
    weights: Weights | None = None

    def measure(self, metric: Metric) -> Measurement | None:
        """The metric's value in this run, None when the run itself failed and the metric is not about that."""
        if self.reading is None and metric.builtin not in OF_FAILED:
            return None
        return measured(metric, self.reading or NOTHING, known(outside_of(self.run), self.weights))


@dataclass(frozen=True, slots=True)
class _Known:
    """What was known before of a metric: its own samples of the base, and what series like it say of its noise."""

    samples: tuple[Sample, ...]
    prior: Prior | None


@dataclass(frozen=True, slots=True)
class Left:
    """What a run has left: the local folder with its logs, and its last checkpoint where a metric asks for it."""

    folder: Path
    weights: Weights | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """What a lease has shipped: its runs with what each has left, by its id. One that has `moved` to another machine in
    mid-run says nothing of how fast a machine is. `history` are samples of the base that were measured before, oldest
    first, by the id of their series; `classes` tell how much series of this repository scatter."""

    runs: tuple[Run, ...]
    left: Mapping[str, Left]
    moved: bool = False
    history: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    classes: Classes = field(default_factory=dict)


def asks_for_weights(call: str, planned: PlannedLease) -> bool:
    """Whether a metric of the benchmark is about the last checkpoint."""
    config = load(Call, call).config
    benchmark = config.benchmarks.get(planned.benchmark) if config else None
    metrics = benchmark.metrics if benchmark else ()
    return any(metric.builtin in ("weights_count", "weights_size") for metric in metrics)


def judge_lease(call: str, planned: PlannedLease, shipped: Shipped) -> Judged:
    """Compare head and base of one lease for each metric of its benchmark.

    `call` is the JSON of the Call that was pinned. Reads files, so it belongs in a thread.
    """
    pinned = load(Call, call)
    config = pinned.config
    benchmark = config.benchmarks.get(planned.benchmark) if config else None
    if config is None or benchmark is None:
        return Judged((), ("The benchmark is not in the configuration of this request.",))
    fingerprint = fingerprint_of(config, planned, pinned.hardware.get(planned.hardware))
    reads = tuple(_read(run, shipped.left[run.id]) for run in shipped.runs)
    notes = [note for read in reads if read.reading for note in _notes(read)]
    notes += _installed(reads)
    comparisons = []
    metrics = [metric for metric in benchmark.metrics if not (shipped.moved and metric.per == "machine")]
    if shipped.moved:
        dropped = [metric.name for metric in benchmark.metrics if metric not in metrics]
        notes.append(
            "The cloud took a machine back, and another one went on from the last checkpoint"
            + (f"; not compared for that reason: {', '.join(dropped)}." if dropped else ".")
        )
    for metric in metrics:
        expanded, left_out = expand(metric, _readings(reads, "base"), _readings(reads, "head"))
        notes += [left_out] if left_out else []
        for one in expanded:
            series = series_id(pinned.pull.repository_id, fingerprint, one)
            known = _Known(shipped.history.get(series, ()), prior_of(one, shipped.classes, series))
            comparison, told = _compare(one, reads, planned, known)
            comparisons.append(comparison)
            notes += told
    return Judged(tuple(comparisons), tuple(dict.fromkeys(notes))[:20])


def _installed(reads: Sequence[_Read]) -> list[str]:
    """What one side has installed and the other has not: numbers may differ for that reason alone."""
    sides = {read.run.side: environment for read in reads if (environment := environment_of(read.run))}
    if len(sides) < 2:
        return []
    found = ["`" + line.replace("`", "'") + "`" for line in differences(sides["base"], sides["head"])]
    more = f" and {len(found) - MOST_LINES} more" if len(found) > MOST_LINES else ""
    return [f"Base (-) and head (+) have other packages: {', '.join(found[:MOST_LINES])}{more}."] if found else []


def _readings(reads: Sequence[_Read], side: str) -> list[Reading]:
    return [read.reading for read in reads if read.run.side == side and read.reading is not None]


def _read(run: Run, left: Left) -> _Read:
    return _Read(run, _reading(left.folder), left.weights) if run.state == "done" else _Read(run, None)


def _reading(folder: Path) -> Reading:
    logs = folder / LOG_FOLDER
    logs.mkdir(parents=True, exist_ok=True)
    return read_folder(logs)


def _notes(read: _Read) -> list[str]:
    reading = read.reading
    if reading is None:
        return []
    name = f"{read.run.side}, seed {read.run.seed}"
    health = reading.health
    said = [f"{name}: {note}" for note in reading.notes]
    if health.bad_records:
        said.append(f"{name}: {health.bad_records} damaged records were left out.")
    if health.tail_bytes:
        said.append(f"{name}: the last {health.tail_bytes} bytes of an event file are an unfinished record.")
    return said


def _compare(
    metric: Metric, reads: tuple[_Read, ...], planned: PlannedLease, before: _Known
) -> tuple[Comparison, list[str]]:
    samples: dict[str, list[Sample]] = {"head": [], "base": []}
    failed = {"head": 0, "base": 0}
    missing = {"head": 0, "base": 0}
    notes = []
    for read in reads:
        found = read.measure(metric)
        if found is None or found.value is None:
            # what a run that ended well did not write is missing; NaN is a failure of the training
            lost = missing if found is not None and found.reason != "diverged" else failed
            lost[read.run.side] += 1
            if found is not None:
                notes.append(f"{metric.name}: {read.run.side}, seed {read.run.seed}: {found.sentence}")
            continue
        samples[read.run.side].append(
            Sample(
                value=found.value,
                seed=read.run.seed,
                machine=read.run.lease_id,
                commit=read.run.commit,
                pair=read.run.pair,
            )
        )
    # whole pairs only: a failed run takes its partner out of the pairing, not out of the sight of people
    paired = _paired(metric, planned)
    evidence = Evidence(
        metric=metric,
        head=tuple(samples["head"]),
        # a pair has its own base, whatever other machines have shown
        base=(() if paired else before.samples) + tuple(samples["base"]),
        paired=paired,
        failed_head=failed["head"],
        failed_base=failed["base"],
        missing_head=missing["head"],
        missing_base=missing["base"],
        prior=before.prior,
    )
    return judge(evidence), notes


def _paired(metric: Metric, planned: PlannedLease) -> bool:
    """What was measured once for all runs of a side is no pair for each of them."""
    once = metric.builtin in OF_A_SIDE
    return all(run.pair is not None for run in planned.runs) and metric.per == "machine" and not once
