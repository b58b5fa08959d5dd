-- Every status an execution ever had, and the actor that moved it. Written by a trigger, a batch at a time. `ready_at`: of what became
-- requested, its place in line then.
create table history (
    execution_id uuid not null,
    at timestamptz not null,
    old text,
    new text not null,
    attempt integer not null,
    actor text,
    reason text,
    ready_at timestamptz
) partition by range (at);
create index history_at on history using brin (at) with (pages_per_range = 8, autosummarize = on);

-- Finished trees, waiting to be moved to the archive: a row for each batch of roots that ended.
create table finished (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    ids uuid[] not null
);

-- Executions that ended a while ago, with all that belongs to them. `state` is how a workflow's tasks ended: what a
-- re-run keeps is found there.
create table archive (
    id uuid not null,
    finished_at timestamptz not null,
    status text not null,
    action text not null,
    namespace text not null,
    root uuid not null,
    parent uuid,
    task text,
    item integer,
    created_at timestamptz not null,
    attempt integer not null,
    failures integer not null,
    recoveries integer not null,
    priority smallint not null,
    definition_id integer not null,
    reason text,
    params jsonb,
    options jsonb,
    origin jsonb,
    result jsonb,
    error jsonb,
    state jsonb,
    steps jsonb, -- what a durable function has recorded
    attempts jsonb, -- those that did not complete, oldest first
    primary key (id, finished_at)
) partition by range (finished_at);
create index archive_root on archive (root);
-- Few, and what people look for: without it, a list of those that failed reads all that went well.
create index archive_not_completed on archive (id) where status <> 'completed';
-- What else people look for: else a list of what runs seldom reads all that runs often.
create index archive_action on archive (action, id);

-- What actions print and log, and on which worker: its id and its name.
create table log_line (
    execution_id uuid not null,
    attempt integer not null,
    seq bigint not null,
    stream text not null,
    line text not null,
    at timestamptz not null default clock_timestamp(),
    worker_id uuid not null,
    worker text not null,
    primary key (execution_id, attempt, seq, at)
) partition by range (at);
