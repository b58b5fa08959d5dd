-- The state of each schedule. A transaction that fires it locks its row, so that its fires come one after another.
create table schedule (
    ref text primary key,
    definition_id integer not null references definition (id),
    namespace_id integer not null,
    enabled boolean not null default true,
    since timestamptz not null,     -- every instant up to here is dealt with; in the future while it is paused
    next_due timestamptz,           -- when to look at it next; null while it is disabled, and when it is over
    last_due timestamptz,
    last_execution uuid,
    error text,                     -- why it could not be planned the last time
    updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index schedule_due on schedule (next_due) where next_due is not null;

-- One due instant of a schedule: the audit of what became of it. The key is what makes each happen once (I7).
-- status: created (has an execution), queued (waits for the one before it), skipped, failed (could not be started).
-- outcome: how its execution ended, once that was seen.
create table fire (
    schedule text not null,
    due_at timestamptz not null,
    status text not null,
    kind text not null,
    definition_id integer not null,
    execution_id uuid,
    recoveries integer not null default 0,
    made_at timestamptz not null default clock_timestamp(),
    made_by text,
    outcome text,
    ended_at timestamptz,
    error text,
    primary key (schedule, due_at)
) partition by range (due_at);
create index fire_made on fire using brin (made_at) with (pages_per_range = 8, autosummarize = on);

-- Fires with an execution that has not been seen to end. Insert and delete only: outcomes are collected, and losses found, here.
create table open_fire (
    execution_id uuid primary key,
    schedule text not null,
    due_at timestamptz not null,
    made_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Fires that wait until the one before them has ended (overlap: queue, replace), with all that starting them takes.
create table waiting_fire (
    schedule text not null,
    due_at timestamptz not null,
    execution_id uuid not null,
    replaces boolean not null,
    namespace_id integer not null,
    definition_id integer not null,
    not_before timestamptz,
    params jsonb not null,
    options jsonb,
    origin jsonb,
    primary key (schedule, due_at)
);
