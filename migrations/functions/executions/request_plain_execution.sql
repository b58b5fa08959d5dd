-- Create and start one execution that needs no decision (start_plain_execution). Return null, and do nothing, if one of these
-- needs the general way (request_executions):
-- - a limit or a hold on the namespace;
-- - timeouts, `warn_after`, `run_labels` or `searchable` in the definition;
-- - a status that is announced or subscribed to;
-- - for a client's submit: a worker that lacks the action;
-- - for an executor's transaction (`p_fused`): any paused workflow;
-- - for a task: a parent that was asked to stop, or has a trace or labels;
-- - for a start by an attempt: any tree with budgets.
-- planner: lookups_planned_once
create or replace function request_plain_execution(
    p_id uuid, p_namespace integer, p_definition integer, p_params text, p_origin text, p_priority smallint,
    p_parent uuid, p_task text, p_item integer, p_fused boolean, p_alone boolean
) returns message[]
language plpgsql
as $$
declare
    v_kind text;
    v_queue text;
    v_name text;
    v_ordered boolean;
    v_priority smallint;
    v_assigns boolean;
begin
    select n.kind, n.queue, n.name, exists (select from ordered_route o where o.queue = n.queue)
    into v_kind, v_queue, v_name, v_ordered
    from namespace n, definition f, cluster u
    where n.id = p_namespace and n.kind in ('action', 'workflow') and n.limits = '{}' and n.hold is null and (p_fused or not n.lacked)
        and f.id = p_definition and not f.body ?| '{timeouts,warn_after,run_labels,searchable}'
        and not (f.kind = 'workflow' and f.body ? 'timeout')
        and u.id = 1 and u.announced = '{}' and u.subscribed = '{}'
        and not (p_fused and exists (select from paused_workflow))
        and (p_origin is null or p_origin not like '%"started_by"%' or not exists (select from budget_tree));
    if not found then
        return null;
    end if;
    if p_parent is not null then
        select coalesce(p_priority, e.priority) into v_priority
        from execution e join workflow w on w.execution_id = e.id
        where e.id = p_parent and w.stop_status is null
            and not exists (select from payload p where p.execution_id = p_parent and p.origin ? 'trace')
            and not exists (select from label l where l.execution_id = p_parent);
        if not found then
            return null;
        end if;
    end if;
    v_assigns := (p_fused or p_alone) and current_setting('penstock.assigns', true) is distinct from 'off'
        and not (v_ordered and exists (select from backlog where queue = v_queue)) -- the backlog comes first
        and not (v_queue = any (coalesce(nullif(current_setting('penstock.own_queues', true), '')::text[], '{}'))
            and nullif(current_setting('penstock.own_slots', true), '')::integer > 0);
    return start_plain_execution(p_id, v_kind, v_queue, v_name, p_namespace, p_definition, p_params::jsonb, p_origin::jsonb,
        coalesce(v_priority, p_priority, 0::smallint), p_parent, p_task, coalesce(p_item, -1), v_assigns, v_ordered);
end $$;
