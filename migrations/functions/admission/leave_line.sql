-- Take executions out of their lanes. With `p_admitted` they are admitted, and are listed in `live` again. Without it they only
-- stop waiting. A lane that loses its first execution then names its new first one. An empty lane is deleted. The caller holds
-- the locks of all keys of these lanes.
-- planner: lookups
create or replace function leave_line(p_ids uuid[], p_admitted boolean) returns void
language plpgsql
as $$
declare
    v_gone waiter[];
    v_counts integer[];
begin
    with gone as (delete from waiter where execution_id = any (p_ids) returning waiter as w)
    select array_agg(x.w), array_agg(x.n) into v_gone, v_counts from (
        select distinct on ((w).lane) w, count(*) over (partition by (w).lane)::integer as n
        from gone order by (w).lane, (w).rank, (w).turn, (w).ready_at, (w).execution_id) x;
    if p_admitted then
        insert into live (execution_id) select unnest(p_ids);
    end if;

    -- The search for the new first execution begins behind the old first one. The index before that place is full of deleted
    -- rows.
    with begins as (
        select g.lane, g.execution_id as was_first, g.n, w.rank, w.turn, w.ready_at, w.execution_id, w.costs
        from unnest(v_gone, v_counts) g (lane, rank, turn, ready_at, execution_id, since, fair_limit, fair_key, fair_group, costs, n)
        left join lateral (
            select * from waiter w
            where w.lane = g.lane
                and (w.rank, w.turn, w.ready_at, w.execution_id) > (g.rank, g.turn, g.ready_at, g.execution_id)
            order by w.rank, w.turn, w.ready_at, w.execution_id limit 1
        ) w on true
    ), emptied as (
        delete from lane l using begins b
        where l.id = b.lane and l.execution_id = b.was_first and b.execution_id is null
    )
    update lane l
    set rank = b.rank, turn = b.turn, ready_at = b.ready_at, execution_id = b.execution_id, costs = b.costs,
        admitted = l.admitted + case when p_admitted then b.n else 0 end
    from begins b
    where l.id = b.lane and l.execution_id = b.was_first and b.execution_id is not null;
end $$;
