"""Alembic's entry: runs migrations on the connection that `bot.store.migrate` hands over."""

from alembic import context

from bot.store import memory
from bot.store.tables import Base

assert memory  # its tables belong to the same metadata
connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
