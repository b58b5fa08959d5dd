-- created -> executed, and the one execution of each; what is executed already is left alone: another delivery of the same
-- event was first.
create or replace function execute_enforcements(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    r record;
begin
    with moved as (
        update enforcement set status = 'executed'
        where execution_id = any (p_ids) and status = 'created'
        returning *
    ), timed as (
        insert into timer (due_at, kind, execution_id)
        select clock_timestamp() + make_interval(secs => (options ->> 'expires')::double precision), 'expires', execution_id
        from moved where options ? 'expires'
    )
    select array_agg(execution_id) as ids, array_agg(namespace_id) as namespaces,
        array_agg(action_definition_id) as definitions, array_agg(params::text) as params,
        array_agg(options::text) as options, array_agg(priority) as priorities,
        array_agg((jsonb_build_object('event', event_id, 'rule', rule)
            || case when trace is null then '{}' else jsonb_build_object('trace', trace) end)::text) as origins
    into r from (select moved.*, t.trace from moved left join event_trace t using (event_id) order by execution_id) m;
    if r.ids is null then
        return '{}';
    end if;
    return request_executions(r.ids, r.namespaces, r.definitions, r.params, r.options, r.origins, r.priorities,
        null, null, null, null, true);
end $$;
