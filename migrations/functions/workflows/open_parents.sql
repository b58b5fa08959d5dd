-- Return the ended executions among `p_ids` and the workflows to advance, in the first round trip of a step. The result has two
-- kinds of rows. The rows up to the column `followed` are ended executions that are children or have followers. The other rows
-- are the parents of the children, which are locked here (open_workflows). The function also marks the ends as delivered. Two
-- deliveries may report the same end. Only the one that finds it unmarked gets `followed`, and starts the actions that follow.
-- planner: lookups_planned_once
create or replace function open_parents(p_ids uuid[]) returns table (
    id uuid, status text, parent uuid, task text, item integer, followed boolean,
    execution_id uuid, definition_id integer, depth smallint, tenant text, head text, rerun text, stops integer,
    stop_status text, stop_reason text, created_at timestamptz, params text, context text
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_told uuid[];
    v_parents uuid[];
begin
    -- Another delivery of the same ends waits here, and then returns no row. The index is read in order, so two deliveries do not
    -- deadlock.
    with gone as (delete from untold u where u.execution_id = any (p_ids) returning u.execution_id)
    select coalesce(array_agg(g.execution_id), '{}') into v_told from gone g;
    return query
        select e.id, e.status, e.parent, e.task, e.item,
            d.body ?| array['on_success', 'on_failure'] and e.id = any (v_told),
            null::uuid, null::integer, null::smallint, null::text, null::text, null::text, null::integer,
            null::text, null::text, null::timestamptz, null::text, null::text
        from execution e cross join lateral (select d.body from definition d where d.id = e.definition_id offset 0) d
        where e.id = any (p_ids) and e.finished_at is not null
            and (e.parent is not null or d.body ?| array['on_success', 'on_failure'] and e.id = any (v_told))
        order by e.parent, e.finished_at, e.id;
    if found then
        select array_agg(distinct e.parent) into v_parents
        from execution e where e.id = any (p_ids) and e.parent is not null and e.finished_at is not null;
    end if;
    if v_parents is not null then
        return query
            select null::uuid, null::text, null::uuid, null::text, null::integer, null::boolean, w.*
            from open_workflows(v_parents, false) w;
    end if;
end $$;
