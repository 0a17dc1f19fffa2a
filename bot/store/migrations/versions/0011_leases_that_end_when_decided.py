"""leases that end when they are decided

Revision ID: 0011
Revises: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("leases") as table:
        table.add_column(sa.Column("looked", sa.BigInteger(), nullable=False, server_default="0"))
