-- Begin calls of poll triggers. For each trigger that has no running call, create an execution with the trigger's state as its
-- parameter. The caller holds the locks of the triggers' rows.
create or replace function start_polls(p_triggers text[], p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    r record;
begin
    with begun as (
        update poll p set running = d.id, next_due = clock_timestamp() + make_interval(secs => p.every)
        from unnest(p_triggers, p_ids) as d (trigger, id)
        where p.trigger = d.trigger and p.running is null
        returning d.id, p.namespace_id, p.definition_id, p.state, p.trigger
    )
    select array_agg(id) as ids, array_agg(namespace_id) as namespaces, array_agg(definition_id) as actions,
        array_agg(jsonb_build_object('state', state)::text) as params,
        array_agg(jsonb_build_object('poll', trigger)::text) as origins
    into r from (select * from begun order by id) b;
    if r.ids is null then
        return '{}';
    end if;
    return request_executions(r.ids, r.namespaces, r.actions, r.params, null, r.origins, null, null, null, null, null, true);
end $$;
