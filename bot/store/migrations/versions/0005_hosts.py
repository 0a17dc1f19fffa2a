"""hosts

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    texts = (
        "code_hash",
        "credential_hash",
        "labels",
        "devices",
        "quarantined",
        "state",
        "order_id",
        "order",
        "code",
        "said",
    )
    op.create_table(
        "hosts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in texts),
        *(sa.Column(name, sa.Double(), nullable=False) for name in ("code_until", "seen_at", "used_at")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("most", "faults")),
        sa.Column("isolates", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hosts")),
        sa.UniqueConstraint("name", name=op.f("uq_hosts_name")),
    )
    op.create_index(op.f("ix_hosts_credential_hash"), "hosts", ["credential_hash"])
