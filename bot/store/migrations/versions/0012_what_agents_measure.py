"""what agents measure

Revision ID: 0012
Revises: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs") as table:
        table.add_column(sa.Column("peak_device_bytes", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("device_trouble", sa.Text(), nullable=False, server_default=""))
        for phase in ("checkout", "setup", "inputs"):
            table.add_column(sa.Column(f"{phase}_s", sa.Double(), nullable=True))
