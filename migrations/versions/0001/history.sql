-- A move of an execution from one status to another, and the actor that moved it. A trigger writes the rows of a statement
-- together. `ready_at`: the place in line of an execution that became requested.
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

-- A batch of root executions that ended together, and that wait to be archived with their trees.
create table finished (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    ids uuid[] not null
);

-- An execution that ended a while ago, with all that belongs to it. `state` has the ends of a workflow's tasks: a re-run
-- reads there what it keeps.
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
    steps jsonb, -- of a durable function
    attempts jsonb, -- attempts that did not complete, oldest first
    primary key (id, finished_at)
) partition by range (finished_at);
create index archive_root on archive (root);
-- For lists of failed executions, which are few: without this index they would read all that completed.
create index archive_not_completed on archive (id) where status <> 'completed';
-- For lists of one action: without this index, a list of a rare action would read all executions of the frequent ones.
create index archive_action on archive (action, id);

-- A line that an action printed or logged, with the id and the name of its worker.
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
