"""The tables of what a repository remembers: the commits of its default branch, series with their samples, schedules.

Nothing here is written by a lease of a pull request: what its code could have touched is no history.
"""

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.tables import Base, Controlled


class Branch(Controlled, Base):
    """The default branch of a repository as it was last looked at. `id` is the repository's."""

    __tablename__ = "branches"
    __table_args__ = (Index("ix_branches_due", "state", "due_at"),)
    repository_id: Mapped[int] = mapped_column(unique=True)
    name: Mapped[str] = mapped_column(default="")
    tip: Mapped[str] = mapped_column(default="")
    trouble: Mapped[str] = mapped_column(default="")  # why its configuration cannot be used, for the pages


class Commit(Base):
    """A commit that is or was on the default branch. `position` counts along its first parents, None for one that a
    forced push has taken away."""

    __tablename__ = "commits"
    __table_args__ = (Index("ix_commits_position", "repository_id", "position"),)
    repository_id: Mapped[int] = mapped_column(primary_key=True)
    sha: Mapped[str] = mapped_column(primary_key=True)
    parent: Mapped[str]
    position: Mapped[int | None]
    number: Mapped[int | None]  # the pull request that brought it, as far as its subject tells
    author: Mapped[str]
    subject: Mapped[str]
    committed_at: Mapped[float]


class Series(Base):
    """The samples of one metric under one fingerprint; `id` is `core.fingerprint.series_id`."""

    __tablename__ = "series"
    __table_args__ = (Index("ix_series_repository", "repository_id", "benchmark"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    repository_id: Mapped[int]
    benchmark: Mapped[str]
    scenario: Mapped[str]
    init: Mapped[str]
    hardware: Mapped[str]
    name: Mapped[str]  # of the metric
    fingerprint: Mapped[str]  # JSON of core.fingerprint.Fingerprint
    metric: Mapped[str]  # JSON of measure.metrics.Metric as it was last declared
    created_at: Mapped[float]
    last_at: Mapped[float]


class SampleRow(Base):
    """One value of one run in a series. `machine` is the lease that it was measured on."""

    __tablename__ = "samples"
    __table_args__ = (
        UniqueConstraint("series_id", "sha", "machine", "seed"),
        Index("ix_samples_measured", "series_id", "measured_at"),
    )
    # SQLite numbers rows by itself only in a column of the type INTEGER
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    series_id: Mapped[str] = mapped_column(ForeignKey("series.id"))
    sha: Mapped[str]
    seed: Mapped[int]
    machine: Mapped[str]
    value: Mapped[float]
    measured_at: Mapped[float]


class Schedule(Controlled, Base):
    """A schedule of the configuration on the default branch; `due_at` is when it runs next."""

    __tablename__ = "schedules"
    __table_args__ = (Index("ix_schedules_due", "state", "due_at"), UniqueConstraint("repository_id", "name"))
    repository_id: Mapped[int]
    name: Mapped[str]
    cron: Mapped[str]
    timezone: Mapped[str]
    text: Mapped[str]  # the command line that it stands for, without its prefix
    last_at: Mapped[float | None]  # the time that it was last due
    last_sha: Mapped[str] = mapped_column(default="")  # what it last measured
    said: Mapped[str] = mapped_column(default="")  # why it last measured nothing


class Alarm(Controlled, Base):
    """Something that the default branch has become worse at. `key` names what it is about: a series, a benchmark that
    fails, or a schedule that does not start; at most one of a key is open."""

    __tablename__ = "alarms"
    __table_args__ = (
        Index("ix_alarms_due", "state", "due_at"),
        Index("ix_alarms_key", "repository_id", "key"),
    )
    repository_id: Mapped[int]
    kind: Mapped[str]
    key: Mapped[str]
    name: Mapped[str]  # benchmark.metric
    variant: Mapped[str] = mapped_column(default="")  # scenario, init and hardware in words
    good_sha: Mapped[str] = mapped_column(default="")  # the last commit that was measured to be good
    bad_sha: Mapped[str] = mapped_column(default="")  # the first one that was measured to be bad
    last_sha: Mapped[str] = mapped_column(default="")
    sentence: Mapped[str] = mapped_column(default="")
    comparison: Mapped[str] = mapped_column(default="")  # JSON of measure.verdict.Comparison
    request_id: Mapped[str] = mapped_column(default="")  # the newest one that said so
    opened_at: Mapped[float]
    ended_at: Mapped[float | None]
    accepted_by: Mapped[str] = mapped_column(default="")
    why: Mapped[str] = mapped_column(default="")
