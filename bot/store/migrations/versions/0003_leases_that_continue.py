"""leases that continue

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("leases") as table:
        table.add_column(sa.Column("continued", sa.BigInteger(), nullable=False, server_default="0"))
        table.add_column(sa.Column("progress", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("stalled", sa.BigInteger(), nullable=False, server_default="0"))
