"""orders: when each machine was ordered, from when on it is billed

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("machines") as table:
        table.add_column(sa.Column("ordered_at", sa.Double(), nullable=True))
