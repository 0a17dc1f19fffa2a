"""costs: estimates, reservations, confirmations, and what each machine has cost

Revision ID: 0006
Revises: 0005
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

FINAL = ("done", "failed", "cancelled")


def upgrade() -> None:
    with op.batch_alter_table("requests") as table:
        table.add_column(sa.Column("estimate_usd", sa.Double(), nullable=True))
        table.add_column(sa.Column("admitted_at", sa.Double(), nullable=True))
        table.add_column(sa.Column("confirmed_by", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("lapses_at", sa.Double(), nullable=True))
    with op.batch_alter_table("leases") as table:
        table.add_column(sa.Column("reserved_usd", sa.Double(), nullable=False, server_default="0"))
    with op.batch_alter_table("machines") as table:
        table.add_column(sa.Column("cost_usd", sa.Double(), nullable=False, server_default="0"))
        table.create_index("ix_machines_gone", ["gone_at"])
    _fill_in()


def _fill_in() -> None:
    """What was spent and reserved before there were columns for it."""
    leases = sa.table("leases", *(sa.column(name) for name in ("id", "state", "planned", "request_id", "reserved_usd")))
    requests = sa.table("requests", sa.column("id"), sa.column("estimate_usd"))
    machines = sa.table(
        "machines", *(sa.column(name) for name in ("up_at", "gone_at", "price_usd_per_hour", "cost_usd"))
    )
    billed = (machines.c.gone_at - machines.c.up_at) / 3600 * machines.c.price_usd_per_hour
    there = (machines.c.up_at.is_not(None), machines.c.gone_at.is_not(None))
    connection = op.get_bind()
    connection.execute(machines.update().where(*there).values(cost_usd=billed))
    estimates: dict[str, float] = {}
    for lease, state, planned, request, _ in connection.execute(sa.select(leases)).all():
        estimate = json.loads(planned).get("estimate_usd") or 0.0
        estimates[request] = estimates.get(request, 0.0) + estimate
        if state not in FINAL:
            connection.execute(leases.update().where(leases.c.id == lease).values(reserved_usd=estimate))
    for request, estimate in estimates.items():
        connection.execute(requests.update().where(requests.c.id == request).values(estimate_usd=estimate))
