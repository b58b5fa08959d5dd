-- Claim, admit, route and stage: requested -> scheduled, or queued where a limit is full (I1, I3). A workflow runs at once,
-- a task that waits begins to. What a paused workflow asked for stays requested.
-- The guard on the status makes losers of a race simply not in it. Rows are locked in the order of ids, those that are under
-- no limit first.
-- planner: lookups_planned_once
create or replace function schedule_executions(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    v_queue text;
    v_size integer;
    v_moved uuid[];
    v_count integer := 0;
begin
    if exists (select from paused_workflow) then
        p_ids := hold_paused(p_ids);
    end if;
    -- Most batches are of one kind: where the first is under limits, all may be.
    if exists (select from execution e join namespace n on n.id = e.namespace_id
               where e.id = p_ids[1] and n.limits <> '{}')
        and not exists (select from execution e join namespace n on n.id = e.namespace_id
                        where e.id = any (p_ids) and n.limits = '{}') then
        return query select * from request_slots(p_ids);
        return;
    end if;
    for v_queue, v_size, v_moved in
        with moved as (
            update execution e
            set status = case when n.queue like 'work.%' then 'scheduled' when n.queue = 'waiting' then 'waiting'
                         else 'running' end
            from namespace n
            where e.id = any (p_ids) and e.status = 'requested' and n.id = e.namespace_id and n.limits = '{}'
                and (e.not_before is null or e.not_before <= clock_timestamp())
            returning e.id, n.queue, n.envelope
        )
        select queue, envelope, array_agg(id order by id) from moved group by queue, envelope
    loop
        v_count := v_count + cardinality(v_moved);
        return query select * from send_on(v_queue, v_moved, v_size);
    end loop;

    if v_count < cardinality(p_ids) then
        return query select * from request_slots(p_ids);
    end if;
end $$;
