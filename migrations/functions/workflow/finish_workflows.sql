-- Ends workflows: running -> p_statuses, with their results. Frees their slots and tells the workflows around them.
-- planner: workflow_ends
create or replace function finish_workflows(p_ids uuid[], p_statuses text[], p_results text[], p_errors text[], p_reasons text[])
returns setof staged
language plpgsql
as $$
declare
    v_moved uuid[];
    v_inside uuid[];
    v_roots uuid[];
begin
    with moved as (
        update execution e set status = d.status, finished_at = clock_timestamp(), reason = coalesce(d.reason, e.reason)
        from unnest(p_ids, p_statuses, p_results, p_errors, p_reasons) as d (id, status, result, error, reason)
        where e.id = any (p_ids) and e.id = d.id and e.status = 'running'
        returning e.id, e.parent, d.result, d.error
    ), told as (
        insert into result (execution_id, result, error) select id, result::jsonb, error::jsonb from moved
    )
    select array_agg(id), array_agg(id) filter (where parent is not null), array_agg(id) filter (where parent is null)
    into v_moved, v_inside, v_roots from moved;
    if v_moved is null then
        return;
    end if;
    delete from paused_workflow where execution_id = any (v_moved);
    return query select * from close_executions(v_moved, v_roots, v_inside);
end $$;
