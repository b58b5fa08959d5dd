-- The state of a schedule. A transaction that fires it locks the row, so that its fires come one after another.
create table schedule (
    ref text primary key,
    definition_id integer not null references definition (id),
    namespace_id integer not null,
    enabled boolean not null default true,
    since timestamptz not null,     -- every due instant up to here is handled; in the future while the schedule is paused
    next_due timestamptz,           -- when to examine the schedule next; null while it is disabled, and after its last fire
    last_due timestamptz,
    last_execution uuid,
    error text,                     -- why its last planning failed
    updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index schedule_due on schedule (next_due) where next_due is not null;

-- A fire: one due instant of a schedule, and what became of it. The primary key makes each fire happen once (I7). `status`:
-- created (has an execution), queued (waits for the end of the previous run), skipped, failed (could not be started). `kind`:
-- due, missed, manual, backfill. `made_by`: the process that recorded it. `outcome` and `ended_at`: how and when its
-- execution ended, once that was recorded.
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

-- A fire with an execution that is not recorded as ended. Insert and delete only. The loop that records outcomes, and finds
-- lost executions, reads this table.
create table open_fire (
    execution_id uuid primary key,
    schedule text not null,
    due_at timestamptz not null,
    made_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- A fire that waits for the end of the previous run (overlap: queue, replace), with all values that its start needs.
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
