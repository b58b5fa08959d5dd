-- Return the recorded steps of a durable function, open or archived. A step with a child execution counts as completed, with the
-- child's result, once the child has completed.
-- planner: lookups
create or replace function recorded_steps(p_execution uuid) returns setof step
language plpgsql stable
as $$
begin
    return query
        select s.execution_id, s.name, s.ordinal, s.place, s.kind,
            case when c.status = 'completed' and s.status = 'started' then 'completed' else s.status end,
            s.tries, s.attempt, s.took, s.at,
            case when c.status = 'completed' and s.status = 'started' then c.result::json else s.result end, s.error,
            coalesce(s.asked_after, 0), s.told
        from (
            select * from step where execution_id = p_execution
            union all
            select (jsonb_populate_record(null::step, x || jsonb_build_object('execution_id', a.id))).*
            from archive a cross join lateral jsonb_array_elements(a.steps) x where a.id = p_execution
        ) s
        left join lateral (
            select e.status, r.result from execution e left join result r on r.execution_id = e.id
            where e.parent = s.execution_id and e.task = s.name and e.item = s.ordinal
            union all
            select a.status, a.result from archive a
            where a.root = (select o.root from archive o where o.id = s.execution_id)
                and a.parent = s.execution_id and a.task = s.name and a.item = s.ordinal
        ) c on s.kind in ('run', 'map', 'ask', 'wait_for');
end $$;
