-- Create the executions of tasks, and schedule them at once. If a definition in `p_known` is no longer current or enabled
-- (are_stale), do nothing, and return `stale` as true.
-- planner: indexes_planned_once
create or replace function start_children(
    p_refs text[], p_known integer[],
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_not_before timestamptz[], p_parents uuid[], p_tasks text[], p_items integer[],
    out messages message[], out stale boolean
)
language plpgsql
as $$
begin
    messages := '{}';
    stale := are_stale(p_refs, p_known);
    if not stale then
        messages := request_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins,
            null, p_not_before, p_parents, p_tasks, p_items, true);
    end if;
end $$;
