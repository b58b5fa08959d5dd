-- Where each poll trigger stands. Its row is held by whoever begins a call or takes in what one has found; `running` is
-- the execution of the call that is under way, so that there is one at a time. `state` is what the last call left there.
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

-- Begins calls of these poll triggers, whose rows the caller holds: an execution each, with the state as its parameter.
create function start_polls(p_triggers text[], p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    return query
    with begun as (
        update poll p set running = d.id, next_due = clock_timestamp() + make_interval(secs => p.every)
        from unnest(p_triggers, p_ids) as d (trigger, id)
        where p.trigger = d.trigger and p.running is null
        returning d.id, p.namespace_id, p.definition_id, p.state, p.trigger
    ), all_of as (
        select array_agg(id) as ids, array_agg(namespace_id) as namespaces, array_agg(definition_id) as actions,
            array_agg(jsonb_build_object('state', state)::text) as params,
            array_agg(jsonb_build_object('poll', trigger)::text) as origins
        from (select * from begun order by id) b
    )
    select r.* from all_of a
    cross join lateral request_executions(a.ids, a.namespaces, a.actions, a.params, null, a.origins, null, null, null,
        null, null, true) r
    where a.ids is not null;
end $$;
