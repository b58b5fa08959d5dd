-- Create the executions of the enforcements `p_ids`, which the caller has just written as executed.
-- planner: indexes_planned_once
create or replace function start_enforced(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    r record;
    v_messages message[];
begin
    insert into timer (due_at, kind, execution_id)
    select clock_timestamp() + make_interval(secs => (options ->> 'expires')::double precision), 'expires', execution_id
    from enforcement where execution_id = any (p_ids) and options ? 'expires';

    select array_agg(m.execution_id) as ids, array_agg(m.namespace_id) as namespaces,
        array_agg(m.action_definition_id) as definitions, array_agg(m.params::text) as params,
        array_agg(m.options::text) as options, array_agg(m.priority) as priorities,
        array_agg((jsonb_build_object('event', m.event_id, 'rule', m.rule)
            || case when m.trace is null then '{}' else jsonb_build_object('trace', m.trace) end)::text) as origins
    into r from (
        select e.*, t.trace from enforcement e left join event_trace t using (event_id)
        where e.execution_id = any (p_ids) order by e.execution_id) m;
    v_messages := request_executions(r.ids, r.namespaces, r.definitions, r.params, r.options, r.origins, r.priorities,
        null, null, null, null, true);
    if exists (select from unnest(r.options) o where o like '%"expires"%') then
        update execution set timed = true
        where id = any (array(select d.id from unnest(r.ids, r.options) as d (id, options) where d.options::jsonb ? 'expires'));
    end if;
    return v_messages;
end $$;
