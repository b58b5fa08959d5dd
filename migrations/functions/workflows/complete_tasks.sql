-- Complete tasks of workflows for their worker. The worker advances the workflows in the same transaction, so no other process is
-- notified. The fence is that of finish_attempts (I2). Either all tasks are completed or none: PN003 is raised for an attempt
-- that the worker no longer owns, or that holds slots. The next waiter would get such a slot under the locks of its keys, and
-- these come after all rows.
-- planner: lookups_planned_once
create or replace function complete_tasks(
    p_worker uuid, p_ids uuid[], p_attempts integer[], p_results text[], p_claims uuid[]
) returns void
language plpgsql
as $$
declare
    v_ended ended[];
begin
    with changed as (
        update execution e
        set status = 'completed', since = null, not_before = null, finished_at = clock_timestamp()
        from unnest(p_ids, p_attempts, p_results) as d (id, attempt, result)
        where e.id = d.id and e.attempt = d.attempt and e.claim = p_worker and e.status in ('running', 'canceling')
            and e.keys is null and e.parent is not null
        returning e.id, e.parent, d.result
    )
    select array_agg((id, parent, 'completed', true, false, result::jsonb, null)::ended) into v_ended from changed;
    if v_ended is null or cardinality(v_ended) < cardinality(p_ids) then
        raise exception 'attempts are not as they were remembered' using errcode = 'PN003';
    end if;
    delete from claim where id = any (p_claims);
    perform settle_moves(v_ended, null, null);
end $$;
