-- End workflows with their results: running -> `p_statuses`. Free their slots, and notify the workflows around them.
-- planner: hashed_planned_once
create or replace function finish_workflows(p_ids uuid[], p_statuses text[], p_results text[], p_errors text[], p_reasons text[])
returns message[]
language plpgsql
as $$
declare
    v_ended ended[];
    v_limited uuid[];
begin
    with changed as (
        update execution e set status = d.status, finished_at = clock_timestamp(), reason = coalesce(d.reason, e.reason)
        from unnest(p_ids, p_statuses, p_results, p_errors, p_reasons) as d (id, status, result, error, reason)
        where e.id = any (p_ids) and e.id = d.id and e.status = 'running'
        returning e.id, e.status, e.parent, e.keys, d.result, d.error
    )
    select array_agg(id) filter (where keys is not null),
        array_agg((id, parent, status, false, parent is not null, result::jsonb, error::jsonb)::ended)
    into v_limited, v_ended from changed;
    return settle_moves(v_ended, null, held_by(v_limited));
end $$;
