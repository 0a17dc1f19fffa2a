"""offers and cooldowns

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cooldowns",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("scope", name=op.f("pk_cooldowns")),
    )
    with op.batch_alter_table("machines") as table:
        table.add_column(sa.Column("offer", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("attempt", sa.BigInteger(), nullable=False, server_default="0"))
        table.add_column(sa.Column("limit_s", sa.Double(), nullable=False, server_default="0"))
