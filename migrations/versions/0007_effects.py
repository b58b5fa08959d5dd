"""The events and executions that executions caused, and waits that end from outside."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
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
# The wait of an execution for something outside: at most one for each execution, of its latest such attempt. `name` is the id
# that the other system knows. It ends at `due_at`, the deadline or the next heartbeat. `outcome` is a result or an error.
OUTSIDE_WAIT = """
create table outside_wait (
    execution_id uuid primary key,
    attempt integer not null,
    tenant text not null,
    name text,
    since timestamptz not null default clock_timestamp(),
    heartbeat double precision,
    deadline_at timestamptz,
    due_at timestamptz,
    progress double precision,
    progress_text text,
    progress_at timestamptz,
    outcome jsonb,
    settled_at timestamptz
)
"""
OUTSIDE_NAME = "create index outside_wait_name on outside_wait (tenant, name) where name is not null and settled_at is null"
OUTSIDE_DUE = "create index outside_wait_due on outside_wait (due_at) where due_at is not null"
# An outcome by an id that no execution waited for yet. It is kept for a day.
EARLY_OUTCOME = """
create table early_outcome (
    tenant text not null,
    name text not null,
    outcome jsonb not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (tenant, name)
)
"""
EARLY_CREATED = "create index early_outcome_created on early_outcome (created_at)"
# The templates of a webhook that give the id that its call completes, and whether it fails it.
WEBHOOK = "alter table webhook add column completes text, add column fails text"
CREATED = "create index effect_created on effect (created_at)"


def upgrade() -> None:
    for statement in (
        EFFECT,
        CREATED,
        SIGNING_KEY,
        NEW_KEY,
        OUTSIDE_WAIT,
        OUTSIDE_NAME,
        OUTSIDE_DUE,
        EARLY_OUTCOME,
        EARLY_CREATED,
        WEBHOOK,
    ):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
