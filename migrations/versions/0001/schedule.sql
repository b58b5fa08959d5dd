-- Claim, admit, route and stage: requested -> scheduled, or queued where a limit is full (I1, I3). A workflow runs at once,
-- a task that waits begins to. What a paused workflow asked for stays requested.
-- The guard on the status makes losers of a race simply not in it. Rows are locked in the order of ids, those that are under
-- no limit first.
create function schedule_executions(p_ids uuid[]) returns setof staged
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_nestloop = on
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
        return query select * from admit_due(p_ids);
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
        return query select * from admit_due(p_ids);
    end if;
end $$;

-- Those that are requested and due. Their rows are locked before their keys, and after the rows of those without limits: also
-- rows of some that lost their limits, or became due, since these were looked at.
create function admit_due(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    v_ids uuid[] := array(
        select id from execution
        where id = any (p_ids) and status = 'requested' and (not_before is null or not_before <= clock_timestamp())
        order by id for no key update);
begin
    if v_ids <> '{}' then
        return query select * from admit_executions(v_ids);
    end if;
end $$;

-- What has started goes on its route; what waits begins to.
create function send_on(p_queue text, p_ids uuid[], p_size integer) returns setof staged
language plpgsql
as $$
begin
    if p_queue = 'waiting' then
        return query select * from begin_waits(p_ids);
    else
        return query select * from stage(p_queue, p_ids, p_size);
    end if;
end $$;
