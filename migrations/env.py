"""Runs the migrations on the connection that `penstock migrate` (or a test) hands over: each in a transaction of its own, unless
the connection is in one."""

from __future__ import annotations

from alembic import context

options = context.config.attributes
context.configure(
    connection=options["connection"],
    target_metadata=options.get("metadata"),
    include_object=options.get("include_object"),
    version_table="penstock_migration",
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
