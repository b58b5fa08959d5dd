-- The definitions: content-addressed and immutable. A run keeps the version with which it started.
create table definition (
    id integer generated always as identity primary key,
    kind text not null,
    ref text not null,
    digest text not null,
    body jsonb not null,
    created_at timestamptz not null default now(),
    unique (kind, ref, digest)
);

-- Which version of each definition is current. `trigger` is set for rules, which are looked up by it.
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

-- One row: facts that concern all processes. `announced`: the statuses that are announced to programs that listen;
-- `subscribed`: the statuses that programs are called for.
create table cluster (
    id integer primary key default 1 check (id = 1),
    resumed_at timestamptz not null default '-infinity',
    announced text[] not null default '{}',
    subscribed text[] not null default '{}'
);

-- Namespaces in use (tenant::pack::workflow::task), each with an action: a task that runs another one in the next version of its
-- workflow has a namespace of the same name. It holds an `action`, which a worker runs; a `workflow`, with
-- tasks that run; or a `wait`, which no worker runs. Each has the queue that its messages go to (a wait has none), how many
-- share an envelope (one, where they take long), and the limits that apply to it now; for those under limits also, since
-- when no live worker serves it. `lacked`: a worker of its route was offered some of it and lacks the action.
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
