-- Queue executions: requested -> queued. Each joins its lane (find_lanes) at its place. The caller holds the locks of the rows
-- and of all their keys, so no other transaction promotes at these keys meanwhile.
-- Under a fair limit, the first execution of a group without waiters joins the current round. Each further execution joins the
-- round after the last one of its group. So a large group does not keep out the other groups.
-- Return the keys at which the caller has to promote, or null: the keys of new lanes. Older lanes were promoted before, so their
-- keys are not returned, with one exception. If a new execution with a cost is now the first of an older lane, the keys of that
-- lane are returned, since the new execution may need less than the former first one.
-- planner: hashed
create or replace function join_line(p_candidates candidate[]) returns limit_key[]
language plpgsql
as $$
declare
    v_ids uuid[] := array(select c.id from unnest(p_candidates) c);
    v_timed uuid[];
    v_first waiter[];
    v_new limit_key[];
begin
    with moved as (
        update execution e set status = 'queued', keys = c.keys
        from unnest(p_candidates) c where e.id = any (v_ids) and e.id = c.id
        returning e.id, e.timed
    )
    select array_agg(id) filter (where timed) into v_timed from moved;
    if v_timed is not null then
        perform set_clocks(v_timed);
    end if;
    delete from live where execution_id = any (v_ids);
    with placed as (
        insert into waiter (lane, rank, turn, ready_at, execution_id, fair_limit, fair_key, fair_group, costs)
        select c.lane, c.rank, case when c.fair_limit is null then 0
            else next_turn(c.fair_limit, c.fair_key, c.fair_group, c.rank) + row_number() over (
                partition by c.fair_limit, c.fair_group, c.rank order by c.ready_at, c.id) - 1 end,
            c.ready_at, c.id, c.fair_limit, c.fair_key, c.fair_group, c.costs
        from unnest(p_candidates) c
        returning waiter as w
    )
    select array_agg(x.w) into v_first from (
        select distinct on ((w).lane) w from placed order by (w).lane, (w).rank, (w).turn, (w).ready_at, (w).execution_id) x;

    with made as (
        insert into lane (id, namespace_id, keys, gate_limit, gate_group, fair_limit, rank, turn, ready_at, execution_id, costs)
        select o.lane, c.namespace_id, c.keys, (c.keys[1]).limit_id, (c.keys[1]).group_value, c.fair_limit,
            o.rank, o.turn, o.ready_at, o.execution_id, o.costs
        from unnest(v_first) o join unnest(p_candidates) c on c.id = o.execution_id
        order by o.rank, o.turn, o.ready_at, o.execution_id -- inserted in the order in which promotions read lanes
        on conflict (id) do nothing
        returning keys
    )
    select array_agg(distinct x.k) into v_new from (select unnest(keys) as k from made) x;
    with changed as (
        update lane l
        set rank = o.rank, turn = o.turn, ready_at = o.ready_at, execution_id = o.execution_id, costs = o.costs
        from unnest(v_first) o
        where l.id = any (array(select lane from unnest(v_first))) and l.id = o.lane
            and (o.rank, o.turn, o.ready_at, o.execution_id) < (l.rank, l.turn, l.ready_at, l.execution_id)
        returning case when o.costs is not null then l.keys end as keys
    )
    select case when count(*) > 0 then coalesce(v_new, '{}') || array_agg(distinct x.k) else v_new end into v_new
    from (select unnest(keys) as k from changed) x;
    return v_new;
end $$;
