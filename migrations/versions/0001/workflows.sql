-- The state of a workflow's run, one row for each execution (I6). `head` is the small part that every advance reads. `rerun`:
-- the run that this one repeats, and what it keeps of it. `stops`: how often the workflow was asked to stop; `stops` in the
-- head says how many of these requests it has obeyed. `version` counts the writes: a process that remembers a state compares
-- the version to know whether the state is still current.
create table workflow (
    execution_id uuid primary key,
    definition_id integer not null,
    depth smallint not null default 0,
    tenant text not null,
    head jsonb,
    rerun jsonb,
    stops integer not null default 0,
    stop_status text,
    stop_reason text,
    version integer not null default 0
) with (fillfactor = 50);

-- The state of a workflow's task (`record`). Only tasks that have begun, or that follow an ended task, have a row.
create table workflow_task (
    execution_id uuid not null,
    task integer not null,
    failing boolean not null default false,
    record jsonb not null,
    primary key (execution_id, task)
) with (fillfactor = 50);

-- A variable that a task published. `writer` is the number of the task, or that of the `vars` of the workflow itself. A task
-- publishes a variable once.
create table workflow_variable (
    execution_id uuid not null,
    writer integer not null,
    name text not null,
    value jsonb,
    primary key (execution_id, writer, name)
);

-- An item of a fan-out, if some of its items start later.
create table workflow_item (
    execution_id uuid not null,
    task integer not null,
    item integer not null,
    value jsonb,
    primary key (execution_id, task, item)
);

-- A command to a workflow, with its author and reason. The workflow obeys its commands in order, under its lock, and the rows
-- are kept.
create table workflow_command (
    id bigint generated always as identity primary key,
    execution_id uuid not null,
    kind text not null,
    task text,
    value jsonb,
    by text not null,
    reason text,
    created_at timestamptz not null default clock_timestamp(),
    obeyed_at timestamptz,
    error text
);
create index workflow_command_open on workflow_command (execution_id) where obeyed_at is null;
create index workflow_command_rerun on workflow_command (execution_id) where kind = 'rerun';

-- A paused workflow: each transaction that schedules tasks looks here. Insert and delete only, and mostly empty.
create table paused_workflow (
    execution_id uuid primary key
);

-- A result that a re-run keeps from the run before. It is a copy, so that it stays however long the re-run takes, and
-- whatever happens to the run before.
create table workflow_kept (
    execution_id uuid not null,
    task integer not null,
    item integer not null,
    result jsonb,
    error jsonb,
    primary key (execution_id, task, item)
);

-- A task of a workflow that waits for an event. Its filter is in the execution's parameters (`payload`). If the filter
-- requires that the event has a certain value at `path`, only events with that value (`key`) are tried.
create table event_wait (
    execution_id uuid primary key,
    tenant text not null,
    trigger text not null,
    path jsonb,
    key text,
    since timestamptz not null
);
create index event_wait_trigger on event_wait (trigger, tenant, key);

-- A path that filters of a trigger compare: a few rows for each trigger, which are never deleted.
create table event_path (
    trigger text not null,
    path jsonb not null,
    primary key (trigger, path)
);
