-- A subscription: a program at `url` that is called when executions move to one of `statuses`. The executions are those of a
-- tenant, an action (`shop.*`) or a workflow; null means all. `tasks`: tasks of workflows count too. `failing_since`: no call
-- was delivered since then. `dropped`: the number of calls that were given up. The row `subscription:NAME` of `secret` signs
-- its calls.
create table subscription (
    name text primary key,
    url text not null,
    statuses text[] not null,
    tenant text,
    action text,
    workflow text,
    tasks boolean not null default false,
    created_by text not null,
    created_at timestamptz not null default clock_timestamp(),
    delivered_at timestamptz,
    failing_since timestamptz,
    error text,
    dropped bigint not null default 0,
    disabled_at timestamptz,
    disabled_because text
);

-- A move to a status that has subscribers (`cluster.subscribed`), written in the transaction of the move. Insert and delete
-- only.
create table subscribed_move (
    id bigint generated always as identity primary key,
    execution_id uuid not null,
    status text not null,
    attempt integer not null,
    namespace_id integer not null,
    parent uuid,
    reason text,
    at timestamptz not null default clock_timestamp()
);

-- A call to a subscriber that was not answered yet. `due_at` is the instant of its next try. While a process tries the call,
-- `due_at` is the end of its lease: then another process tries it.
create table delivery (
    id uuid primary key,
    subscription text not null references subscription (name) on delete cascade,
    body text not null,
    tries integer not null default 0,
    made_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null default clock_timestamp()
);
create index delivery_due on delivery (subscription, due_at);
