-- Programs that are called when executions move: those of a tenant, an action (`shop.*`), a workflow, or all. `tasks`: those of
-- workflows too. `failing_since`: no call has come through since then. `dropped`: calls that were given up. The row of `secret` that is
-- named after the subscription signs its calls.
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

-- Moves to statuses that have subscribers (`cluster.subscribed`), written with the move itself: insert and delete only.
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

-- Calls that are to be made, each until it is answered: `due_at` is when it is tried next, and, while it is, when it is tried
-- again if the process that tries it dies.
create table delivery (
    id uuid primary key,
    subscription text not null references subscription (name) on delete cascade,
    body text not null,
    tries integer not null default 0,
    made_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null default clock_timestamp()
);
create index delivery_due on delivery (subscription, due_at);
