"""what a repository remembers

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def _controlled() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("want", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("poked", sa.Boolean(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("claim_until", sa.Double(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
    )


def upgrade() -> None:
    op.create_table(
        "branches",
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("tip", sa.Text(), nullable=False),
        sa.Column("trouble", sa.Text(), nullable=False),
        *_controlled(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_branches")),
        sa.UniqueConstraint("repository_id", name=op.f("uq_branches_repository_id")),
    )
    op.create_index("ix_branches_due", "branches", ["state", "due_at"], unique=False)
    op.create_table(
        "commits",
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("number", sa.BigInteger(), nullable=True),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("committed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "sha", name=op.f("pk_commits")),
    )
    op.create_index("ix_commits_position", "commits", ["repository_id", "position"], unique=False)
    _series()
    op.create_table(
        "schedules",
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=True),
        sa.Column("last_sha", sa.Text(), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        *_controlled(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
        sa.UniqueConstraint("repository_id", "name", name=op.f("uq_schedules_repository_id_name")),
    )
    op.create_index("ix_schedules_due", "schedules", ["state", "due_at"], unique=False)


def _series() -> None:
    op.create_table(
        "series",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("benchmark", sa.Text(), nullable=False),
        sa.Column("scenario", sa.Text(), nullable=False),
        sa.Column("init", sa.Text(), nullable=False),
        sa.Column("hardware", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
    )
    op.create_index("ix_series_repository", "series", ["repository_id", "benchmark"], unique=False)
    op.create_table(
        "samples",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("series_id", sa.Text(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("measured_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_samples_series_id_series")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_samples")),
        sa.UniqueConstraint("series_id", "sha", "machine", "seed", name=op.f("uq_samples_series_id_sha_machine_seed")),
    )
    op.create_index("ix_samples_measured", "samples", ["series_id", "measured_at"], unique=False)
