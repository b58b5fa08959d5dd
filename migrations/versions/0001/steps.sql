-- The things that durable functions asked for, and their results: a row each, found by name (with the branch before it: `2/charge`)
-- and ordinal. `place`: the number of the request in its branch; 0: the function did not ask, it was told.
-- kind: step, value, version, sleep, run, map, ask, wait_for, signal, state, given. status: started (a sleep, a child, a step
-- between two tries), completed, failed. `took`: seconds that its function ran, all tries together. `result` is text as it came:
-- a function that gets it back gets the very same. Of a child the result is its execution's. `told`: the number of the result
-- among all that the function was told; `asked_after`: the number of what it was told right before it asked for this.
-- status, too: cancelled (the branch that asked was), superseded (a later attempt went another way). kind, too: end.
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

-- Durable functions that wait and have no worker meanwhile: for children that are open, for an instant, for signals (name and
-- ordinal each). Insert and delete only: the transaction that deletes a row requests the function again.
create table suspended (
    execution_id uuid primary key,
    since timestamptz not null default clock_timestamp(),
    until timestamptz,
    children uuid[] not null default '{}',
    signals jsonb not null default '[]'
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
