"""Breakers: keys at which admission stops while the calls fail."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# The breaker that a limit stands for, instead of `max` and a rate: `failures` of the last `of` attempts within `within` seconds
# open it, and `probe` is the time from there to a probe, in seconds. Null: the limit is not a breaker.
LIMIT = "alter table concurrency_limit add column breaker jsonb"
# A key with a breaker that is not closed. Nothing is admitted before `probe_at` (null: until it is closed by hand). After
# that, at most `allowed` executions that were admitted since `opened_at` are under way: one probe, and more after a probe
# has completed (`releasing_since`). `passed` counts the completed calls until `allowed` doubles. `failed` of `attempts`
# opened it. `by` is the person that opened it, or null. A transaction that changes a row holds the lock of the key.
BREAKER = """
create table breaker (
    limit_id integer not null,
    group_value text not null,
    opened_at timestamptz not null default clock_timestamp(),
    probe_at timestamptz,
    probes integer not null default 0,
    failed integer not null default 0,
    attempts integer not null default 0,
    releasing_since timestamptz,
    allowed integer not null default 1,
    passed integer not null default 0,
    by text,
    reason text,
    primary key (limit_id, group_value)
) with (fillfactor = 50)
"""
# An attempt that counts for the breaker of a key. Insert and delete only: what is out of the window is deleted.
ATTEMPT = """
create table breaker_attempt (
    limit_id integer not null,
    group_value text not null,
    ended_at timestamptz not null default clock_timestamp(),
    execution_id uuid not null,
    attempt integer not null,
    failed boolean not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
"""
ATTEMPT_KEY = "create index breaker_attempt_key on breaker_attempt (limit_id, group_value, ended_at)"
ATTEMPT_ENDED = "create index breaker_attempt_ended on breaker_attempt (ended_at)"
# A freed slot of a key with a breaker.
CALL = """
create type breaker_call as (
    execution_id uuid, limit_id integer, group_value text, attempt integer, admitted_at timestamptz
)
"""


def upgrade() -> None:
    for statement in (LIMIT, BREAKER, ATTEMPT, ATTEMPT_KEY, ATTEMPT_ENDED, CALL):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError(
        "A schema is never downgraded: the release before runs on this one too. Or restore a backup."
    )
