-- A version of a definition: content-addressed and immutable. A run keeps the version with which it started.
create table definition (
    id integer generated always as identity primary key,
    kind text not null,
    ref text not null,
    digest text not null,
    body jsonb not null,
    created_at timestamptz not null default now(),
    unique (kind, ref, digest)
);

-- The current version of each definition. `trigger` is set for rules only, which are looked up by it.
create table catalog (
    kind text not null,
    ref text not null,
    definition_id integer not null references definition (id),
    enabled boolean not null default true,
    trigger text,
    updated_at timestamptz not null default now(),
    primary key (kind, ref)
);
create index catalog_trigger on catalog (trigger) where trigger is not null;

-- Facts that concern all processes, in one row. `resumed_at`: the end of the last silence of all processes (note_silence).
-- `announced`: the statuses that are announced to listeners. `subscribed`: the statuses that subscriptions name.
create table cluster (
    id integer primary key default 1 check (id = 1),
    resumed_at timestamptz not null default '-infinity',
    announced text[] not null default '{}',
    subscribed text[] not null default '{}'
);

-- A namespace in use (`tenant::pack::workflow::task`), with one action. If the next version of a workflow runs another action
-- in a task, there are two rows of one name. `kind`: an `action`, which a worker runs; a `workflow`, which has tasks; or a
-- `wait`, which no worker runs. `queue`: the queue of its executions' messages; null for a wait. `envelope`: how many
-- executions share a message (1 if they take long). `limits`: the limits that apply now. `away_since`: since when no live
-- worker serves it; noted only under limits. `lacked`: a worker of its route was offered one of its executions and lacks the
-- action.
create table namespace (
    id integer generated always as identity primary key,
    name text not null,
    action text not null,
    kind text not null check (kind in ('action', 'workflow', 'wait')),
    queue text check ((queue is null) = (kind = 'wait')),
    envelope smallint not null default 20,
    limits integer[] not null default '{}',
    away_since timestamptz,
    lacked boolean not null default false,
    unique (name, action)
);
create index namespace_lacked on namespace (id) where lacked;
