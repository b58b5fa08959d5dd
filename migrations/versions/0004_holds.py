"""Holds, and the executions that they hold."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# A hold of an action or workflow, a pack, a route or a tenant (`kind`). With `releasing_since`, what it holds is released one
# after the other, at its rate, and `released` counts the executions so far. Otherwise nothing that it covers takes a worker.
HOLD = """
create table hold (
    kind text not null check (kind in ('action', 'pack', 'route', 'tenant')),
    name text not null,
    reason text,
    by text not null,
    since timestamptz not null default clock_timestamp(),
    until timestamptz,
    rate_count integer,
    rate_seconds double precision,
    releasing_since timestamptz,
    released bigint not null default 0,
    primary key (kind, name),
    check ((rate_count is null) = (rate_seconds is null) and (rate_count is null) = (releasing_since is null))
)
"""
# The state of the holds that cover a namespace: `held`, or `releasing` if all of them are being released. Null: none covers it.
STATE = "alter table namespace add column hold text"
# An execution that is held: it is requested, and `not_before` is that of a paused task. Insert and delete only.
HELD = """
create table held_execution (
    execution_id uuid primary key,
    namespace_id integer not null,
    rank smallint not null,
    ready_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
NEXT = "create index held_execution_next on held_execution (namespace_id, rank, ready_at, execution_id)"


def upgrade() -> None:
    for statement in (HOLD, STATE, HELD, NEXT):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
