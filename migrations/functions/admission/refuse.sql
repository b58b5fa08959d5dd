-- Cancel the new executions in `p_waiting` that a limit does not let wait. Either the limit has `when_full: cancel_new`, or
-- `max_waiting` executions wait for it already. Under `when_full: cancel_running`, make older executions give way. Each limit of
-- an execution decides, not only the one at which the execution waits. An execution that waits for another limit, a worker or its
-- regrouping, and needs this key, counts as a waiter of this key. An execution that has run before is not refused, so a retry
-- keeps its place. The caller holds the locks of the rows and of all keys, so neither the waiters nor the room can change.
create or replace function refuse(p_waiting candidate[]) returns message[]
language plpgsql
as $$
declare
    v_new uuid[];
    v_ids uuid[];
    r record;
    v_free integer;
    v_waiting integer;
    v_others integer;
    v_excess integer;
    v_gives_way boolean := false;
    v_messages message[] := '{}';
begin
    if not exists (select from concurrency_limit l
                   where l.id = any (array(select k.limit_id from unnest(p_waiting) c cross join unnest(c.keys) k))
                       and (l.when_full <> 'enqueue' or l.max_waiting is not null)) then
        return v_messages;
    end if;
    v_new := array(select c.id from unnest(p_waiting) c where c.attempt = 0);
    for r in
        select k.limit_id, k.group_value, c.ref, c.max, c.when_full, c.max_waiting,
            array_agg(w.execution_id order by w.rank, w.turn, w.ready_at, w.execution_id) as ids
        from waiter w join lane l on l.id = w.lane
        cross join unnest(l.keys) k join concurrency_limit c on c.id = k.limit_id
        where w.execution_id = any (v_new) and (c.when_full <> 'enqueue' or c.max_waiting is not null)
        group by k.limit_id, k.group_value, c.id
        order by k.limit_id, k.group_value
    loop
        -- In an earlier turn of this loop, another limit may have refused some of these executions.
        v_ids := array(select d.id from unnest(r.ids) with ordinality d (id, place)
                       where exists (select from waiter w where w.execution_id = d.id) order by d.place);
        -- One promotion starts a limited number of executions, so there can be room for some that still wait.
        v_free := (
            select case when m.weighted then (
                select count(*) from (
                    select sum(least(coalesce(k.cost, 1), m.allowed)) over (order by w.rank, w.turn, w.ready_at, w.execution_id) as needs
                    from waiter w join lane l on l.id = w.lane
                    cross join lateral unnest(l.keys, w.costs) k (limit_id, group_value, cost)
                    where w.execution_id = any (v_ids) and k.limit_id = m.limit_id and k.group_value = m.group_value) x
                where x.needs <= m.free) else m.free end
            from unnest(key_room(array[(r.limit_id, r.group_value)::limit_key])) m);
        -- Lanes at the gate of another limit are found by the limits that share a namespace with this one. Counting stops at the
        -- number that decides.
        select count(*), count(*) filter (where x.execution_id <> all (v_ids)) into v_waiting, v_others from (
            select w.execution_id from lane l join waiter w on w.lane = l.id
            where l.gate_limit = r.limit_id and l.gate_group = r.group_value
            union all
            select w.execution_id from (
                select distinct unnest(n.limits) as id from namespace n where n.limits && array[r.limit_id] and cardinality(n.limits) > 1) o
            join lane l on l.gate_limit = o.id and cardinality(l.keys) > 1 and (r.limit_id, r.group_value)::limit_key = any (l.keys)
                and (l.gate_limit, l.gate_group) <> (r.limit_id, r.group_value)
            join waiter w on w.lane = l.id
            union all
            select w.execution_id from namespace n
            join lane l on l.namespace_id = n.id and l.gate_kind <> 'limit' and (r.limit_id, r.group_value)::limit_key = any (l.keys)
            join waiter w on w.lane = l.id
            where n.limits && array[r.limit_id]
            limit coalesce(r.max_waiting, 0)::bigint + v_free + cardinality(v_ids)) x;
        if r.when_full = 'cancel_new' then
            v_messages := v_messages || (end_executions(v_ids[greatest(v_free - v_others, 0) + 1:], array['queued'], 'cancelled',
                format('refused: the limit %s is full', r.ref), null)).messages;
            continue;
        end if;
        if r.max_waiting is not null then
            v_excess := v_waiting - r.max_waiting - v_free;
            if v_excess > 0 then
                v_messages := v_messages || (end_executions(v_ids[cardinality(v_ids) - v_excess + 1:], array['queued'],
                    'cancelled', format('refused: %s already wait for the limit %s', r.max_waiting, r.ref), null)).messages;
            end if;
        end if;
        if r.when_full = 'cancel_running' then
            perform give_way((r.limit_id, r.group_value)::limit_key, r.max);
            v_gives_way := true;
        end if;
    end loop;
    if v_gives_way then
        v_messages := v_messages || timers_set((select min(due_at) from timer where kind = 'yield' and due_at <= clock_timestamp()));
    end if;
    return v_messages;
end $$;
