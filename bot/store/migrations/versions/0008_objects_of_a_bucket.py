"""objects of a bucket

Revision ID: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("artifacts") as table:
        table.add_column(sa.Column("object_id", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("removed_at", sa.Double(), nullable=True))
    op.create_table(
        "objects",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("md5", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("want", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("poked", sa.Boolean(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("claim_until", sa.Double(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_objects_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_objects")),
    )
    op.create_index("ix_objects_due", "objects", ["state", "due_at"], unique=False)
    op.create_index("ix_objects_run", "objects", ["run_id", "path"], unique=False)
