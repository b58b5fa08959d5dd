-- waiting -> completed, with what came: an event, an answer. Whoever moves the execution has won; timeouts and
-- cancellations race for the same move. Returns what it staged and, as `moved`, the ids that it really moved.
-- planner: indexes_unmerged
create or replace function complete_waits(p_ids uuid[], p_results text[], p_reasons text[]) returns setof staged
language plpgsql
as $$
declare
    v_moved uuid[];
    v_roots uuid[];
begin
    perform from execution where id = any (p_ids) and status = 'waiting' order by id for no key update;
    with moved as (
        update execution e set status = 'completed', finished_at = clock_timestamp(), reason = d.reason
        from unnest(p_ids, p_results, p_reasons) as d (id, result, reason)
        where e.id = any (p_ids) and e.id = d.id and e.status = 'waiting'
        returning e.id, e.parent, d.result
    ), told as (
        insert into result (execution_id, result) select id, result::jsonb from moved
    )
    select array_agg(id), array_agg(id) filter (where parent is null) into v_moved, v_roots from moved;
    if v_moved is null then
        return;
    end if;
    delete from event_wait where execution_id = any (v_moved);
    return query select null::bigint, 'moved', v_moved;
    return query select * from close_executions(v_moved, v_roots, v_moved);
end $$;
