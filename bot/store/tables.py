"""The tables. Everything that lasts is a row here; what workers bring closer to the world carries `Controlled`.

Times are seconds since the epoch. Values that are only read back whole (plans, reports, configurations) are JSON text.
"""

from typing import ClassVar

from sqlalchemy import BigInteger, Double, ForeignKey, Index, Integer, MetaData, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """All tables share one naming convention, so that migrations can name what they change."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar = {str: Text, float: Double, int: BigInteger}


class Controlled:
    """A row that a worker drives.

    `due_at` is when it wants attention next (None: only when poked); `poked` is set by events and cleared by the
    claim, so that what happens during a step is never lost. A claim is a token with an end; a claim that ran out is
    due again. `attempts` counts claims since the last step that ended well; `error` is the reference of the last bug.
    """

    id: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    want: Mapped[str] = mapped_column(default="")
    due_at: Mapped[float | None]
    poked: Mapped[bool] = mapped_column(default=False)
    claim: Mapped[str | None]
    claim_until: Mapped[float | None]
    attempts: Mapped[int] = mapped_column(default=0)
    error: Mapped[str] = mapped_column(default="")


def _due(table: str) -> Index:
    return Index(f"ix_{table}_due", "state", "due_at")


class Delivery(Controlled, Base):
    """A webhook delivery: `id` is GitHub's, `happened` names what happened, whoever reported it."""

    __tablename__ = "deliveries"
    __table_args__ = (_due("deliveries"),)
    happened: Mapped[str] = mapped_column(unique=True)
    event: Mapped[str]
    body: Mapped[str]
    received_at: Mapped[float]


class Repository(Base):
    """A repository that the App is installed on, by GitHub's id: names change, ids do not."""

    __tablename__ = "repositories"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    full_name: Mapped[str]
    private: Mapped[bool]
    default_branch: Mapped[str]
    installation_id: Mapped[int]


class Head(Base):
    """Our own log of pull request heads, in the order in which we learnt of them."""

    __tablename__ = "heads"
    __table_args__ = (Index("ix_heads_pull", "repository_id", "number", "received_at"),)
    # SQLite numbers rows by itself only in a column of the type INTEGER
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    repository_id: Mapped[int]
    number: Mapped[int]
    sha: Mapped[str]
    received_at: Mapped[float]


class Allowed(Base):
    """A head commit that somebody with write right allowed to run, by command or by an approving review."""

    __tablename__ = "allowed"
    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    sha: Mapped[str] = mapped_column(primary_key=True)
    by_login: Mapped[str]
    allowed_at: Mapped[float]


class Comment(Base):
    """A comment or review body as last seen: an edit runs only the lines that are new."""

    __tablename__ = "comments"
    id: Mapped[str] = mapped_column(primary_key=True)
    repository_id: Mapped[int]
    number: Mapped[int]
    body: Mapped[str]
    seen_at: Mapped[float]


class Request(Controlled, Base):
    """One accepted command line, approval or local run; the unit of report, check run, cancel and budget."""

    __tablename__ = "requests"
    __table_args__ = (_due("requests"), Index("ix_requests_pull", "repository_id", "number"))
    trigger: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    repository_id: Mapped[int]
    full_name: Mapped[str]
    private: Mapped[bool]
    number: Mapped[int]
    requester: Mapped[str]
    requester_id: Mapped[int]
    command: Mapped[str]
    call: Mapped[str]  # JSON of core.nouns.Call: everything that was pinned when it was accepted
    trusted: Mapped[bool]
    head_sha: Mapped[str]
    base_sha: Mapped[str]
    created_at: Mapped[float]
    finished_at: Mapped[float | None]
    verdict: Mapped[str] = mapped_column(default="")
    reason: Mapped[str] = mapped_column(default="")  # JSON of core.nouns.Reason
    report: Mapped[str] = mapped_column(default="")  # JSON of core.nouns.Report
    outdated_by: Mapped[str] = mapped_column(default="")
    estimate_usd: Mapped[float | None]  # the most that it may cost, once it is planned and its prices are known
    admitted_at: Mapped[float | None]  # when the limits let it in: from then on its estimate is reserved
    confirmed_by: Mapped[str] = mapped_column(default="")
    lapses_at: Mapped[float | None]  # when nobody is waited for any longer


class Lease(Controlled, Base):
    """Our hold on a machine for one benchmark of a request, with its ordered runs."""

    __tablename__ = "leases"
    __table_args__ = (_due("leases"), Index("ix_leases_request", "request_id"))
    request_id: Mapped[str] = mapped_column(ForeignKey("requests.id"))
    position: Mapped[int]
    planned: Mapped[str]  # JSON of core.nouns.PlannedLease
    repeats: Mapped[str] = mapped_column(default="")  # the lease whose suspected regression it repeats
    hardware: Mapped[str]
    created_at: Mapped[float]
    deadline_at: Mapped[float | None]
    phase: Mapped[str] = mapped_column(default="")
    token_hash: Mapped[str] = mapped_column(default="")
    nonce_hash: Mapped[str] = mapped_column(default="")
    credential_hash: Mapped[str] = mapped_column(default="")
    beat_at: Mapped[float | None]
    outcome: Mapped[str] = mapped_column(default="")  # what the agent said at its end
    tries: Mapped[int] = mapped_column(default=0)
    continued: Mapped[int] = mapped_column(default=0)  # how often another machine went on where one was taken back
    progress: Mapped[str] = mapped_column(default="")  # hash of what was done when the last one was taken back
    stalled: Mapped[int] = mapped_column(default=0)  # how often in a row nothing had been added to it
    looked: Mapped[int] = mapped_column(default=0)  # after how many runs it was last seen that more are needed
    reason: Mapped[str] = mapped_column(default="")  # JSON of core.nouns.Reason
    comparisons: Mapped[str] = mapped_column(default="")  # JSON of measure.verdict.Comparison, one per metric
    notes: Mapped[str] = mapped_column(default="[]")
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    reserved_usd: Mapped[float] = mapped_column(default=0.0)  # counts until it is final and its machines are gone
    cost_usd: Mapped[float] = mapped_column(default=0.0)


class Run(Base):
    """One side of a benchmark executed once with one seed. Written by the agent's messages."""

    __tablename__ = "runs"
    __table_args__ = (Index("ix_runs_lease", "lease_id", "position"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    lease_id: Mapped[str] = mapped_column(ForeignKey("leases.id"))
    position: Mapped[int]
    side: Mapped[str]
    seed: Mapped[int]
    pair: Mapped[int | None]
    commit: Mapped[str]
    state: Mapped[str] = mapped_column(default="queued")
    started_at: Mapped[float | None]
    seconds: Mapped[float | None]
    exit_status: Mapped[int | None]
    reason: Mapped[str] = mapped_column(default="")
    sentence: Mapped[str] = mapped_column(default="")
    stop: Mapped[str] = mapped_column(default="")  # why its agent is to end it
    log_tail: Mapped[str] = mapped_column(default="")
    imported: Mapped[str] = mapped_column(default="")
    peak_rss_bytes: Mapped[int | None]
    peak_device_bytes: Mapped[int | None]
    device_trouble: Mapped[str] = mapped_column(default="")  # why the one before is not known
    checkout_s: Mapped[float | None]
    setup_s: Mapped[float | None]
    inputs_s: Mapped[float | None]
    environment: Mapped[str] = mapped_column(default="")  # JSON of core.environments.Environment


class Machine(Controlled, Base):
    """One host as the cloud knows it. The row is written before the machine is created and outlives the lease."""

    __tablename__ = "machines"
    __table_args__ = (
        _due("machines"),
        Index("ix_machines_lease", "lease_id"),
        Index("ix_machines_gone", "gone_at"),
    )
    lease_id: Mapped[str] = mapped_column(ForeignKey("leases.id"))
    backend: Mapped[str]
    hardware: Mapped[str]
    zone: Mapped[str] = mapped_column(default="")
    offer: Mapped[str] = mapped_column(default="")  # JSON of runners.spec.Offer: written down before it is tried
    attempt: Mapped[int] = mapped_column(default=0)
    member: Mapped[int] = mapped_column(default=0)
    token: Mapped[str]  # the lease token's only plain copy; emptied when the machine is up
    trusted: Mapped[bool]
    created_at: Mapped[float]
    ordered_at: Mapped[float | None]  # when this offer was ordered, or was last seen in a queue: billed from here on
    up_at: Mapped[float | None]  # when the cloud began to make it
    gone_at: Mapped[float | None]
    limit_s: Mapped[float] = mapped_column(default=0.0)  # the longest time from the order to the deadline
    deadline_at: Mapped[float]
    price_usd_per_hour: Mapped[float] = mapped_column(default=0.0)
    cost_usd: Mapped[float] = mapped_column(default=0.0)  # settled when it is gone
    code: Mapped[str] = mapped_column(default="")
    sentence: Mapped[str] = mapped_column(default="")


class Member(Base):
    """One host of a lease that has several, as its agent claimed it; member 0 is the one whose numbers count."""

    __tablename__ = "members"
    lease_id: Mapped[str] = mapped_column(ForeignKey("leases.id"), primary_key=True)
    member: Mapped[int] = mapped_column(primary_key=True)
    nonce_hash: Mapped[str]
    credential_hash: Mapped[str] = mapped_column(index=True)
    address: Mapped[str]  # where the others reach it: a host, and for member 0 a port
    beat_at: Mapped[float]
    ready: Mapped[str] = mapped_column(default="")  # the run that it waits to begin, or has begun
    met: Mapped[str] = mapped_column(default="")  # the last run that all were ready for, and where host 0 was then
    failed: Mapped[str] = mapped_column(default="")  # the run that failed on it
    sentence: Mapped[str] = mapped_column(default="")


class Cooldown(Base):
    """A scope of offers that has refused, and is left alone until a time; `times` counts refusals in a row."""

    __tablename__ = "cooldowns"
    scope: Mapped[str] = mapped_column(primary_key=True)
    until: Mapped[float]
    times: Mapped[int]
    sentence: Mapped[str]


class Host(Base):
    """A host of the operator's pool, from its invitation on; `runners.spec.PoolHost` says what its `state` means.

    `most` is the largest number of devices that it has shown; `faults` counts leases that its devices did not survive.
    """

    __tablename__ = "hosts"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    code_hash: Mapped[str] = mapped_column(default="")
    code_until: Mapped[float] = mapped_column(default=0.0)
    credential_hash: Mapped[str] = mapped_column(default="", index=True)  # empty: it has not enrolled yet
    labels: Mapped[str] = mapped_column(default="[]")  # JSON of texts
    devices: Mapped[str] = mapped_column(default="[]")  # JSON of core.pool.Device
    most: Mapped[int] = mapped_column(default=0)
    isolates: Mapped[bool] = mapped_column(default=False)
    seen_at: Mapped[float] = mapped_column(default=0.0)
    used_at: Mapped[float] = mapped_column(default=0.0)
    faults: Mapped[int] = mapped_column(default=0)
    quarantined: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(default="free")
    order_id: Mapped[str] = mapped_column(default="")  # the machine's name
    order: Mapped[str] = mapped_column(default="")  # JSON of runners.spec.MachineOrder; without its token once it runs
    code: Mapped[str] = mapped_column(default="")
    said: Mapped[str] = mapped_column(default="")


class Slot(Base):
    """One place on a hardware name; whoever holds it may have a machine there."""

    __tablename__ = "slots"
    hardware: Mapped[str] = mapped_column(primary_key=True)
    slot: Mapped[int] = mapped_column(primary_key=True)
    lease_id: Mapped[str | None] = mapped_column(unique=True)


class Artifact(Base):
    """A file of a run in the artifact store. `sha256` is empty until the agent's manifest has confirmed it."""

    __tablename__ = "artifacts"
    __table_args__ = (UniqueConstraint("run_id", "path"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    path: Mapped[str]
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(default="")
    object_id: Mapped[str] = mapped_column(default="")  # the object that holds it; empty: the server's own disk
    removed_at: Mapped[float | None]


class Object(Controlled, Base):
    """One object of the bucket from before its first byte on, or a file on the server's disk that is to go.

    `address` is empty for the latter. `session` is where its bytes are sent to while they are.
    """

    __tablename__ = "objects"
    __table_args__ = (_due("objects"), Index("ix_objects_run", "run_id", "path"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    path: Mapped[str]
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(default="")
    md5: Mapped[str] = mapped_column(default="")
    address: Mapped[str] = mapped_column(default="")
    session: Mapped[str] = mapped_column(default="")
    created_at: Mapped[float]


class Message(Controlled, Base):
    """Something that GitHub shall show: a reaction, a reply, a results comment, a check run.

    `wanted` is the JSON to send; `sent` the hash of what GitHub has. `remote_id` is GitHub's id once it is known.
    """

    __tablename__ = "messages"
    __table_args__ = (_due("messages"), Index("ix_messages_request", "request_id"))
    kind: Mapped[str]
    repository_id: Mapped[int]
    number: Mapped[int]
    request_id: Mapped[str | None]
    wanted: Mapped[str]
    sent: Mapped[str] = mapped_column(default="")
    remote_id: Mapped[int | None]
    created_at: Mapped[float]


class Incident(Base):
    """A bug or an outage, by the reference that public texts show instead of the exception."""

    __tablename__ = "incidents"
    id: Mapped[str] = mapped_column(primary_key=True)
    happened_at: Mapped[float]
    where: Mapped[str]
    traceback: Mapped[str]
