-- Puts executions in line; p_wanted tells in which. With `fair`, the first of a group that has none waiting joins the round
-- that is on, and each further one the round after its group's last; so however many one group has, others have their turn.
-- Returns the keys of lanes that are new, which nobody has looked at yet: the caller promotes there.
-- planner: hashed
create or replace function enqueue(p_wanted wanted[]) returns text[]
language plpgsql
as $$
declare
    v_first waiter[];
    v_new text[];
begin
    with placed as (
        insert into waiter (lane, rank, turn, ready_at, execution_id, fair_group)
        select w.lane, w.rank, case when w.fair is null then 0 else next_turn(w.fair, w.fair_group, w.rank)
            + row_number() over (partition by w.fair_group, w.rank order by w.ready_at, w.id) - 1 end,
            w.ready_at, w.id, w.fair_group
        from unnest(p_wanted) w
        returning waiter as w
    )
    select array_agg(x.w) into v_first from (
        select distinct on ((w).lane) w from placed order by (w).lane, (w).rank, (w).turn, (w).ready_at, (w).execution_id) x;

    with made as (
        insert into lane (id, namespace_id, keys, gate, fair, rank, turn, ready_at, execution_id)
        select o.lane, w.namespace_id, w.keys, w.keys[1], w.fair, o.rank, o.turn, o.ready_at, o.execution_id
        from unnest(v_first) o join unnest(p_wanted) w on w.id = o.execution_id
        on conflict (id) do nothing
        returning keys
    )
    select array_agg(distinct x.k) into v_new from (select unnest(keys) as k from made) x;
    update lane l
    set rank = o.rank, turn = o.turn, ready_at = o.ready_at, execution_id = o.execution_id
    from unnest(v_first) o
    where l.id = any (array(select lane from unnest(v_first))) and l.id = o.lane
        and (o.rank, o.turn, o.ready_at, o.execution_id) < (l.rank, l.turn, l.ready_at, l.execution_id);
    return v_new;
end $$;
