-- A staged message (an envelope), written by the transaction that caused it. On the PostgreSQL transport the table is also
-- the queue. `holder` is the process that leased the row last, to publish or to handle it; the lease ends at `due_at`.
create table outbox (
    id bigint generated always as identity primary key,
    queue text not null,
    ids uuid[] not null,
    body bytea,
    message_id text,
    type text,
    headers jsonb,
    tries integer not null default 0,
    due_at timestamptz not null default clock_timestamp(),
    created_at timestamptz not null default clock_timestamp(),
    error text,
    holder uuid
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index outbox_queue on outbox (queue, due_at);

-- A message that cannot be handled, with the reason. `cut_from`: the bytes of the whole body, where only its beginning is
-- kept.
create table dead_letter (
    id uuid primary key,
    queue text not null,
    reason text not null,
    type text,
    message_id text,
    body bytea not null,
    cut_from integer,
    headers jsonb not null default '{}',
    fingerprint text not null unique,
    count integer not null default 1,
    first_at timestamptz not null default clock_timestamp(),
    last_at timestamptz not null default clock_timestamp()
);
create index dead_letter_last on dead_letter (last_at);

-- An event that no process has matched yet: if its message is lost, it is found here. Insert and delete only.
create table unmatched (
    event_id uuid primary key,
    since timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The end of an execution that was not yet delivered to its workflow or callbacks: if the message is lost, the end is found
-- here. Insert and delete only. The transaction that deletes a row starts the executions that follow, so that they start
-- once.
create table untold (
    execution_id uuid primary key,
    since timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- An execution that a process (`watcher`) waits for. The process is notified of the end on its own channel. The row is a
-- hint: it does not outlive a crash of the server, and a process that still waits inserts it again. Insert and delete only.
create unlogged table awaited (
    execution_id uuid,
    watcher uuid,
    at timestamptz not null default clock_timestamp(),
    primary key (execution_id, watcher)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
