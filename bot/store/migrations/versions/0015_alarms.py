"""alarms

Revision ID: 0015
Revises: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alarms",
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("good_sha", sa.Text(), nullable=False),
        sa.Column("bad_sha", sa.Text(), nullable=False),
        sa.Column("last_sha", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("comparison", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("accepted_by", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("want", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("poked", sa.Boolean(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("claim_until", sa.Double(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alarms")),
    )
    op.create_index("ix_alarms_due", "alarms", ["state", "due_at"], unique=False)
    op.create_index("ix_alarms_key", "alarms", ["repository_id", "key"], unique=False)
