-- Creates the executions of tasks and schedules them at once. p_known are the definitions that the caller took
-- p_refs for, from memory: says `stale` and does nothing if one of them is not current or not enabled any more.
-- planner: indexes_planned_once
create or replace function start_children(
    p_refs text[], p_known integer[],
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_not_before timestamptz[], p_parents uuid[], p_tasks text[], p_items integer[]
) returns setof staged
language plpgsql
as $$
begin
    if exists (select from unnest(p_refs, p_known) as k (ref, id)
               where not exists (select from catalog c where c.kind = any ('{action,workflow}') and c.ref = k.ref
                                 and c.definition_id = k.id and c.enabled)) then
        return query select null::bigint, 'stale', '{}'::uuid[];
        return;
    end if;
    return query select * from request_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins,
        null, p_not_before, p_parents, p_tasks, p_items, true);
end $$;
