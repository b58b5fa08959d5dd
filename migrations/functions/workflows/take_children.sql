-- Create the executions of tasks as running, claimed by the worker that ended the tasks before them, so that no other worker gets
-- them. `queue` is null, and nothing is done, unless all of this holds: All tasks are actions that the worker knows, on one of
-- its queues. No limit and no hold covers them. No workflow is paused, and none of the worker's queues has a backlog. PN003 is
-- raised if one of the executions exists already, or if a definition is no longer the current one of its ref.
-- planner: lookups_planned_once
create or replace function take_children(
    p_worker uuid, p_claim uuid, p_queues text[], p_known integer[], p_refs text[], p_current integer[],
    p_ids uuid[], p_namespaces integer[], p_definitions integer[], p_params text[], p_options text[], p_origins text[],
    p_parents uuid[], p_tasks text[],
    out queue text, out claimed claimed_attempt[], out messages message[]
)
language plpgsql
as $$
declare
    v_made uuid[];
    v_due timestamptz;
begin
    claimed := '{}';
    messages := '{}';
    if not p_definitions <@ p_known or exists (select from paused_workflow)
        or exists (select from backlog where backlog.queue = any (p_queues)) -- the backlog comes first
    then
        return;
    end if;
    select min(n.queue) into queue from namespace n where n.id = any (p_namespaces)
    having bool_and(n.kind = 'action' and n.limits = '{}' and n.hold is null and n.queue = any (p_queues)) and min(n.queue) = max(n.queue);
    if queue is null then
        return;
    end if;
    if are_stale(p_refs, p_current) then
        raise exception 'a definition is not as it was remembered' using errcode = 'PN003';
    end if;
    select c.made, c.due into v_made, v_due
    from create_executions(p_ids, p_namespaces, p_definitions, p_params, p_options, p_origins, inherited_priorities(p_parents), null, p_parents, p_tasks,
        null, null, null, p_worker) c;
    if v_made is null or cardinality(v_made) < cardinality(p_ids) then
        raise exception 'tasks exist already' using errcode = 'PN003';
    end if;
    insert into claim (id, worker, executions) values (p_claim, p_worker, v_made)
    on conflict (id) do update set executions = claim.executions || excluded.executions;
    if v_due is not null then
        messages := timers_set(v_due);
    end if;
    select array_agg((d.id, 1, 0, n.name, d.definition_id, 0, d.params, d.options, null, d.parent, root_of(d.parent), d.task,
        (p.origin -> 'trace')::text)::claimed_attempt)
    into claimed
    from unnest(p_ids, p_namespaces, p_definitions, p_params, p_options, p_parents, p_tasks)
        as d (id, namespace_id, definition_id, params, options, parent, task)
    join namespace n on n.id = d.namespace_id
    join payload p on p.execution_id = d.id;
end $$;
