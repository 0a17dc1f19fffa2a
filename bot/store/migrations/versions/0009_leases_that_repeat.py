"""leases that repeat another one

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("leases") as table:
        table.add_column(sa.Column("repeats", sa.Text(), nullable=False, server_default=""))
