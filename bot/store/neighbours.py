"""The other series of a repository, as far as they can tell how much a metric varies."""

from collections.abc import Collection, Mapping

from sqlalchemy import func, select

from bot.measure.metrics import Metric, Sample
from bot.measure.noise import Classes, Spread, class_of, spread_of
from bot.store.codec import load
from bot.store.database import Transaction
from bot.store.history import WINDOW
from bot.store.memory import Commit, SampleRow, Series

# of a repository, those that were measured last
MOST_SERIES = 200


async def classes_of(tx: Transaction, repository_id: int, wanted: Collection[Metric]) -> Classes:
    """How much each series scatters that is of the class of one of these metrics, by class and by the series' id."""
    about = select(Series.id, Series.metric).where(Series.repository_id == repository_id)
    classes = {class_of(metric) for metric in wanted}
    found: dict[str, Metric] = {}
    for name, text in (await tx.execute(about.order_by(Series.last_at.desc(), Series.id))).all():
        metric = load(Metric, text)
        if class_of(metric) in classes and metric.noise != 0:
            found[name] = metric
        if len(found) == MOST_SERIES:
            break
    scattered: dict[tuple[str, ...], dict[str, Spread]] = {}
    for name, samples in (await _newest(tx, repository_id, found)).items():
        spread = spread_of(found[name], samples)
        if spread is not None:
            scattered.setdefault(class_of(found[name]), {})[name] = spread
    return scattered


async def _newest(tx: Transaction, repository_id: int, series: Collection[str]) -> Mapping[str, list[Sample]]:
    """The last samples of each series on the default branch, oldest first."""
    order = (Commit.position.desc(), SampleRow.measured_at.desc(), SampleRow.id.desc())
    age = func.row_number().over(partition_by=SampleRow.series_id, order_by=order).label("age")
    rows = (
        select(SampleRow.series_id, SampleRow.value, SampleRow.seed, SampleRow.machine, SampleRow.sha, age)
        .join(Commit, (Commit.repository_id == repository_id) & (Commit.sha == SampleRow.sha))
        .where(SampleRow.series_id.in_(series), Commit.position.is_not(None))
        .subquery()
    )
    kept = select(rows).where(rows.c.age <= WINDOW).order_by(rows.c.series_id, rows.c.age.desc())
    found: dict[str, list[Sample]] = {}
    for row in await tx.execute(kept):
        sample = Sample(value=row.value, seed=row.seed, machine=row.machine, commit=row.sha)
        found.setdefault(row.series_id, []).append(sample)
    return found
