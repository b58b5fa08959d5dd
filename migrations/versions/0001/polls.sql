-- The state of a poll trigger. A transaction that begins a call, or stores its result, locks the row. `running` is the
-- execution of the present call, so that there is one at a time. `state` is the state that the last call returned.
create table poll (
    trigger text primary key,
    definition_id integer not null references definition (id),  -- of the action that calls its function
    namespace_id integer not null,
    every double precision not null,
    enabled boolean not null default true,
    next_due timestamptz not null default clock_timestamp(),
    running uuid,
    state jsonb not null default '{}',
    called_at timestamptz,                  -- when the end of the last call was seen
    found bigint not null default 0,        -- events of all calls
    failures integer not null default 0,    -- calls that failed since the last one that did not
    error text                              -- why the last call failed
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index poll_due on poll (next_due) where running is null and enabled;
