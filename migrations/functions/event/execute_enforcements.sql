-- created -> executed, and the one execution of each; what is executed already is left alone.
create or replace function execute_enforcements(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    return query
    with moved as (
        update enforcement set status = 'executed'
        where execution_id = any (p_ids) and status = 'created'
        returning *
    ), timed as (
        insert into timer (due_at, kind, execution_id)
        select clock_timestamp() + make_interval(secs => (options ->> 'expires')::double precision), 'expire', execution_id
        from moved where options ? 'expires'
    ), all_of as (
        select array_agg(execution_id) as ids, array_agg(namespace_id) as namespaces,
            array_agg(action_definition_id) as definitions, array_agg(params::text) as params,
            array_agg(options::text) as options, array_agg(priority) as priorities,
            array_agg(jsonb_build_object('event', event_id, 'rule', rule)::text) as origins
        from (select * from moved order by execution_id) m
    )
    select s.* from all_of a
    cross join lateral request_executions(a.ids, a.namespaces, a.definitions, a.params, a.options, a.origins,
        a.priorities, null, null, null, null, true) s
    where a.ids is not null;
end $$;
