-- Takes executions out of their lanes, since they are let in (p_admitted: they are live again) or will not wait there any more.
-- Each lane knows who is its first now; one that is empty goes. The caller holds the locks of all keys of these lanes.
-- planner: lookups
create or replace function leave_line(p_ids uuid[], p_admitted boolean) returns void
language plpgsql
as $$
declare
    v_lanes uuid[];
    v_counts integer[];
begin
    with gone as (delete from waiter where execution_id = any (p_ids) returning lane)
    select array_agg(x.lane), array_agg(x.n) into v_lanes, v_counts
    from (select lane, count(*)::integer as n from gone group by lane) x;

    if p_admitted then
        insert into live (execution_id) select unnest(p_ids);
    end if;
    -- Nobody stands before the one who was first, so the next is looked for from there: not among those who left long ago.
    with begins as (
        select l.id, c.n, w.rank, w.turn, w.ready_at, w.execution_id
        from unnest(v_lanes, v_counts) c (lane, n)
        join lane l on l.id = c.lane
        left join lateral (
            select * from waiter w
            where w.lane = l.id
                and (w.rank, w.turn, w.ready_at, w.execution_id) >= (l.rank, l.turn, l.ready_at, l.execution_id)
            order by w.rank, w.turn, w.ready_at, w.execution_id limit 1
        ) w on true
        where l.id = any (v_lanes)
    ), emptied as (
        delete from lane l using begins b where l.id = any (v_lanes) and l.id = b.id and b.execution_id is null
    )
    update lane l
    set rank = b.rank, turn = b.turn, ready_at = b.ready_at, execution_id = b.execution_id,
        admitted = l.admitted + case when p_admitted then b.n else 0 end
    from begins b
    where l.id = any (v_lanes) and l.id = b.id and b.execution_id is not null
        and (p_admitted or l.execution_id <> b.execution_id);
end $$;
