"""History that was measured elsewhere, brought into the series that it belongs to, and history taken out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import func, select

from bot.core.fingerprint import Fingerprint, fingerprint_of
from bot.core.nouns import Call, Command, Hardware, Plan, RepoConfig
from bot.core.planning import PlanInputs, plan
from bot.core.records import SampleLine
from bot.measure.metrics import Metric, Sample
from bot.store.codec import load
from bot.store.database import Database, Transaction
from bot.store.history import Measured, positions_of, remember
from bot.store.memory import SampleRow, Series
from bot.store.tables import Repository, Request


class Unknown(ValueError):
    """Something that was named is not there; the text is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """How many samples are new, were there already, and belong to commits that the branch is not known to have;
    `refused` are sentences on what belongs to no series."""

    added: int
    known: int
    elsewhere: int
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    fingerprint: Fingerprint
    metric: Metric


async def repository_named(tx: Transaction, name: str) -> Repository:
    """A repository by its name or its id at GitHub. Raises Unknown."""
    mine = Repository.id == int(name) if name.isdigit() else func.lower(Repository.full_name) == name.lower()
    found = (await tx.scalars(select(Repository).where(mine))).first()
    if found is None:
        raise Unknown(f"there is no repository {name}; it is known once the App has heard of it")
    return found


async def lines_of(tx: Transaction, repository: Repository) -> Sequence[SampleLine]:
    """All samples of a repository, by series and in the order in which they were measured."""
    rows = select(Series, SampleRow).join(SampleRow, SampleRow.series_id == Series.id)
    mine = rows.where(Series.repository_id == repository.id)
    names = (Series.benchmark, Series.scenario, Series.init, Series.hardware, Series.name)
    ordered = mine.order_by(*names, Series.id, SampleRow.measured_at, SampleRow.id)
    return [
        SampleLine(
            benchmark=series.benchmark,
            scenario=series.scenario,
            init=series.init,
            hardware=series.hardware,
            metric=series.name,
            commit=row.sha,
            seed=row.seed,
            machine=row.machine,
            value=row.value,
            at=row.measured_at,
        )
        for series, row in (await tx.execute(ordered)).all()
    ]


async def bring_in(
    database: Database,
    repository: Repository,
    lines: Sequence[SampleLine],
    hardware: Mapping[str, Hardware],
    now: float,
) -> Brought:
    """Add samples to the newest series of their names, or to that of the newest configuration; all or nothing."""
    ordered = sorted(lines, key=_names)
    refused = []
    async with database.write() as tx:
        before = await _count(tx, repository)
        branch = await positions_of(tx, repository.id)
        config = await _config(tx, repository)
        kept: list[SampleLine] = []
        for names, group in groupby(ordered, key=_names):
            mine = list(group)
            place = await _place(tx, repository, names, config, hardware)
            if isinstance(place, str):
                refused.append(f"{len(mine)} samples of {' / '.join(names)}: {place}")
                continue
            kept += mine
            for at, at_once in groupby(mine, key=lambda line: line.at or now):
                measured = Measured(metric=place.metric, samples=tuple(map(_sample, at_once)))
                for statement in remember(database, repository.id, place.fingerprint, [measured], at):
                    await tx.execute(statement)
        added = await _count(tx, repository) - before
    return Brought(
        added=added,
        known=len(kept) - added,
        elsewhere=sum(line.commit not in branch for line in kept),
        refused=tuple(refused),
    )


def _names(line: SampleLine) -> tuple[str, str, str, str, str]:
    return line.benchmark, line.scenario, line.init, line.hardware, line.metric


def _sample(line: SampleLine) -> Sample:
    # without a word on machines each commit was measured on one of its own
    return Sample(value=line.value, seed=line.seed, machine=line.machine or line.commit[:10], commit=line.commit)


async def _count(tx: Transaction, repository: Repository) -> int:
    counted = select(func.count()).select_from(SampleRow).join(Series).where(Series.repository_id == repository.id)
    return await tx.scalar(counted) or 0


async def _config(tx: Transaction, repository: Repository) -> RepoConfig:
    newest = select(Request.call).where(Request.repository_id == repository.id, Request.kind != "local")
    call = await tx.scalar(newest.order_by(Request.created_at.desc(), Request.id).limit(1))
    return (load(Call, call).config if call else None) or RepoConfig()


async def _place(
    tx: Transaction,
    repository: Repository,
    names: tuple[str, str, str, str, str],
    config: RepoConfig,
    hardware: Mapping[str, Hardware],
) -> _Place | str:
    """The series of these names, or why there is none."""
    benchmark, scenario, init, machine, metric = names
    mine = (
        Series.repository_id == repository.id,
        Series.benchmark == benchmark,
        Series.scenario == scenario,
        Series.init == init,
        Series.hardware == machine,
        Series.name == metric,
    )
    series = (await tx.scalars(select(Series).where(*mine).order_by(Series.last_at.desc(), Series.id))).first()
    if series is not None:
        return _Place(load(Fingerprint, series.fingerprint), load(Metric, series.metric))
    if benchmark not in config.benchmarks:
        return f"the configuration that was last used has no benchmark {benchmark}"
    declared = [one for one in config.benchmarks[benchmark].metrics if one.name == metric]
    if not declared:
        return f"the benchmark has no metric {metric}"
    options = {"scenario": scenario, "init": init, "on": machine}
    command = Command(verb="run", targets=(benchmark,), options=options, line=0, text="")
    planned = plan(PlanInputs(command=command, targets=(benchmark,), config=config, hardware=hardware))
    if not isinstance(planned, Plan):
        return f"{planned.sentence} {planned.hint}".strip()
    return _Place(fingerprint_of(config, planned.leases[0], hardware.get(machine)), declared[0])
