"""Permits of workers, and a mark on claims that a submit made for a worker."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# A worker inserts a row for each execution that it may be assigned, and a submit deletes one and claims the execution for that
# worker. `channel` is where the worker is notified: only workers and functions of the owner can read it, so that no other role
# can name work to it. `actor` is the name of the worker's session, for the history. A row is valid for a few seconds from `at`.
# Unlogged: a permit is a hint, and does not outlive a crash of the server. Insert and delete only.
PERMIT = """
create unlogged table permit (
    worker uuid not null,
    queue text not null,
    at timestamptz not null default clock_timestamp(),
    channel text not null,
    actor text not null,
    definitions integer[] not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
INDEXES = ("create index permit_queue on permit (queue, at)", "create index permit_worker on permit (worker)")
# The worker did not make such a claim itself: if the notification is lost, it finds the claim by this mark.
ASSIGNED = "alter table claim add column assigned boolean not null default false"
# What a submit has assigned to a worker under one claim. `attempts` is an array of id, parameters (as text) and trace of each.
ASSIGNMENT = "create type assignment as (worker uuid, channel text, claim uuid, attempts json)"


def upgrade() -> None:
    for statement in (PERMIT, *INDEXES, ASSIGNED, ASSIGNMENT):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
