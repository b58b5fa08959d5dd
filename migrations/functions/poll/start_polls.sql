-- Begins calls of these poll triggers, whose rows the caller holds: an execution each, with the state as its parameter.
create or replace function start_polls(p_triggers text[], p_ids uuid[]) returns setof staged
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
