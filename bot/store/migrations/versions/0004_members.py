"""members

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "members",
        sa.Column("lease_id", sa.Text(), nullable=False),
        sa.Column("member", sa.BigInteger(), nullable=False),
        sa.Column("nonce_hash", sa.Text(), nullable=False),
        sa.Column("credential_hash", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("beat_at", sa.Double(), nullable=False),
        sa.Column("ready", sa.Text(), nullable=False),
        sa.Column("met", sa.Text(), nullable=False),
        sa.Column("failed", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_members_lease_id_leases")),
        sa.PrimaryKeyConstraint("lease_id", "member", name=op.f("pk_members")),
    )
    op.create_index(op.f("ix_members_credential_hash"), "members", ["credential_hash"])
    with op.batch_alter_table("machines") as table:
        table.add_column(sa.Column("member", sa.BigInteger(), nullable=False, server_default="0"))
