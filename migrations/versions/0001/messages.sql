-- Messages staged by the transactions that caused them; an envelope a row. On the PostgreSQL transport also the queue.
-- `holder` is the process that took it last, to publish or to handle it, and has it until `due_at`.
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

-- Messages that cannot be handled, with the reason. `cut_from`: bytes that the body had, where only its beginning is kept.
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

-- Events that no process has matched yet: if the message is lost, they are found here. Insert and delete only.
create table unmatched (
    event_id uuid primary key,
    since timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Ends that no process has followed yet (workflows, callbacks): if the message is lost, they are found here. Insert and
-- delete only. The transaction that deletes a row starts what follows, so that it starts once.
create table untold (
    execution_id uuid primary key,
    since timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Executions that processes wait for. The process is notified of their ends on a channel of its own. A hint: it does not
-- outlive a crash of the server, and a process that still waits writes its row again. Insert and delete only.
create unlogged table awaited (
    execution_id uuid,
    watcher uuid,
    at timestamptz not null default clock_timestamp(),
    primary key (execution_id, watcher)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
