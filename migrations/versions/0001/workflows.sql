-- The state of a workflow's run: one row for each execution (I6). `head` is small; of its tasks only those have a
-- row that have begun or of which something before has ended. `rerun`: of which run this is a re-run, and what it keeps.
-- `stops`: how often it was asked to stop; of these the head has obeyed so many as it says. `version`: how often what was decided
-- was written: a process that remembers the state of one version compares it to know whether that is still the state.
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

create table workflow_task (
    execution_id uuid not null,
    task integer not null,
    failing boolean not null default false,
    record jsonb not null,
    primary key (execution_id, task)
) with (fillfactor = 50);

-- What tasks publish. A task publishes a variable once.
create table workflow_variable (
    execution_id uuid not null,
    writer integer not null,
    name text not null,
    value jsonb,
    primary key (execution_id, writer, name)
);

-- Items of fan-outs of which some start later.
create table workflow_item (
    execution_id uuid not null,
    task integer not null,
    item integer not null,
    value jsonb,
    primary key (execution_id, task, item)
);

-- Commands to a workflow, with their author and reason; followed under its lock, in order, and kept.
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

-- Workflows that are paused, a row each: the process that schedules their tasks looks here. Insert and delete only, mostly empty.
create table paused_workflow (
    execution_id uuid primary key
);

-- What a re-run keeps: the results of the executions of kept tasks. Copied, so that it is there however long the re-run
-- takes, and whatever becomes of the run before.
create table workflow_kept (
    execution_id uuid not null,
    task integer not null,
    item integer not null,
    result jsonb,
    error jsonb,
    primary key (execution_id, task, item)
);

-- Tasks of workflows that wait for an event. What their filter says is in the payload. Where it asks that what is at
-- `path` of the event equals a value, only those events are tried that have its `key` there.
create table event_wait (
    execution_id uuid primary key,
    tenant text not null,
    trigger text not null,
    path jsonb,
    key text,
    since timestamptz not null
);
create index event_wait_trigger on event_wait (trigger, tenant, key);

-- At which paths the filters of a trigger look: a few rows for each trigger, which stay.
create table event_path (
    trigger text not null,
    path jsonb not null,
    primary key (trigger, path)
);
