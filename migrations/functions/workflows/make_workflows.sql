-- Insert the missing rows in `workflow` of the running workflows among `p_ids`.
-- planner: lookups_planned_once
create or replace function make_workflows(p_ids uuid[]) returns void
language plpgsql
as $$
begin
    insert into workflow (execution_id, definition_id, tenant, depth, rerun)
    select e.id, e.definition_id, split_part(n.name, '::', 1), coalesce((p.origin ->> 'depth')::smallint, 0),
        case when p.origin ? 'rerun_of' then p.origin end
    from execution e
    cross join lateral (select n.name, n.kind from namespace n where n.id = e.namespace_id offset 0) n
    cross join lateral (select p.origin from payload p where p.execution_id = e.id offset 0) p
    where e.id = any (p_ids) and e.status = 'running' and n.kind = 'workflow'
    on conflict do nothing;
end $$;
