-- Complete waiting executions with a result, such as an event or an answer: waiting -> completed. A timeout or a cancel may move
-- the same row at the same time. The first transaction to move it wins. `moved` are the executions that this call of the function
-- completed.
-- planner: indexes_unmerged
create or replace function complete_waits(
    p_ids uuid[], p_results text[], p_reasons text[], out messages message[], out moved uuid[]
)
language plpgsql
as $$
declare
    v_ended ended[];
    v_limited uuid[];
begin
    perform from execution where id = any (p_ids) and status = 'waiting' order by id for no key update;
    with changed as (
        update execution e set status = 'completed', finished_at = clock_timestamp(), reason = d.reason
        from unnest(p_ids, p_results, p_reasons) as d (id, result, reason)
        where e.id = any (p_ids) and e.id = d.id and e.status = 'waiting'
        returning e.id, e.parent, e.keys, d.result
    )
    select coalesce(array_agg(id), '{}'), array_agg(id) filter (where keys is not null),
        array_agg((id, parent, 'completed', false, true, result::jsonb, null)::ended)
    into moved, v_limited, v_ended from changed;
    messages := settle_moves(v_ended, null, held_by(v_limited));
end $$;
