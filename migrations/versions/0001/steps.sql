-- A recorded step of a durable function: a request of the function and its result, found by name (after its branch:
-- `2/charge`) and ordinal. `place`: the number of the request in its branch; 0 if the function did not request the step (a
-- signal, a result that was set from outside). `kind`: step, value, version, sleep, run, map, ask, wait_for, signal, state,
-- given, end.
-- `status`: started (a sleep, a child, a step between two tries), completed, failed, cancelled (its branch was cancelled),
-- superseded (a later attempt took another way). `took`: the seconds that its function ran, in all tries together. `result`
-- is kept as text, so that the function gets exactly the same text back; the result of a child is in the child's execution.
-- `told`: the number of this result among all results that were delivered to the function. `asked_after`: the number of the
-- last result that was delivered before this request.
create table step (
    execution_id uuid not null,
    name text not null,
    ordinal integer not null,
    place integer not null,
    kind text not null,
    status text not null,
    tries integer not null default 1,
    attempt integer not null,
    took real not null default 0,
    at timestamptz not null default clock_timestamp(),
    result json,
    error json,
    asked_after integer not null default 0,
    told integer,
    primary key (execution_id, name, ordinal)
) with (autovacuum_vacuum_insert_scale_factor = 0.2);

-- A suspended durable function, which has no worker while it waits: for open children, for an instant (`until`), or for
-- signals (each a name and an ordinal). Insert and delete only: the transaction that deletes a row requests the function
-- again.
create table suspended (
    execution_id uuid primary key,
    since timestamptz not null default clock_timestamp(),
    until timestamptz,
    children uuid[] not null default '{}',
    signals jsonb not null default '[]'
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
