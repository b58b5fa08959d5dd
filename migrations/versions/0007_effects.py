"""The events and executions that executions caused, and waits that end from outside."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0004"
branch_labels = None
depends_on = None

# An event that the execution `parent` published, or an execution that it started, through its worker. Insert and delete only.
EFFECT = """
create table effect (
    parent uuid not null,
    id uuid not null,
    kind text not null check (kind in ('event', 'execution')),
    created_at timestamptz not null default clock_timestamp(),
    primary key (parent, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
# The key that signs the tokens and the callback addresses of executions. One row.
SIGNING_KEY = """
create table signing_key (
    id smallint primary key default 1 check (id = 1),
    key bytea not null check (length(key) = 32)
)
"""
NEW_KEY = """
insert into signing_key (key)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())))
"""
CREATED = "create index effect_created on effect (created_at)"


def upgrade() -> None:
    for statement in (EFFECT, CREATED, SIGNING_KEY, NEW_KEY):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
