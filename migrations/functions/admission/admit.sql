-- Admit executions that the caller has chosen (promote, request_slots, request_executions): move them from requested or queued to
-- the status in which they start, insert their slots, log their admissions, and stage their messages. With `p_born_at`, the
-- caller has created the rows as started at that instant, so the function moves none. An execution without keys starts without a
-- slot. `p_rooms` is the room of each key before this admission. The caller holds the locks of the rows and of all their keys. It
-- has checked the room, and has taken the executions out of their lanes.
-- planner: hashed
create or replace function admit(p_candidates candidate[], p_rooms room[], p_born_at timestamptz default null) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[] := case when p_born_at is null then array(select c.id from unnest(p_candidates) c) end;
    v_messages message[] := '{}';
    v_gives_way boolean := false;
    r record;
begin
    for r in
        with changed as (
            update execution e
            set status = start_status(c.kind), keys = c.keys,
                since = case when e.status = 'queued' then clock_timestamp() else e.since end
            from unnest(p_candidates) c
            where p_born_at is null and e.id = any (v_ids) and e.id = c.id
            returning c.id, c.kind, c.queue, c.envelope, c.keys, c.costs, c.rank, c.turn, c.ready_at, c.since, c.gate_limit,
                c.fair_limit, e.attempt + 1 as next_attempt, e.timed
        ), moved as (
            select * from changed
            union all
            select c.id, c.kind, c.queue, c.envelope, c.keys, c.costs, c.rank, 0, p_born_at, null, null, null, 1, false
            from unnest(p_candidates) c
            where p_born_at is not null
        ), held as materialized (
            -- An execution that costs more than a lowered limit allows takes the whole limit.
            select m.id, m.rank, m.turn, m.ready_at, m.since, m.gate_limit, m.fair_limit, m.next_attempt, limit_id, group_value,
                case when o.weighted then least(coalesce(k.cost, 1), o.allowed) end as cost, o.held, o.allowed, o.rated,
                clock_timestamp() as admitted_at
            from moved m cross join lateral unnest(m.keys, m.costs) k (limit_id, group_value, cost)
            left join unnest(p_rooms) o using (limit_id, group_value)
        ), given as (
            insert into slot (limit_id, group_value, execution_id, attempt, cost, admitted_at)
            select limit_id, group_value, id, next_attempt, cost, admitted_at from held
        ), logged as (
            -- I4 compares the admissions of a key since the instant at which the execution began to wait at that key's gate. For
            -- a key at which it did not wait, `since` is now. It is also now for the gate's key if the execution's turn is one of
            -- another key.
            insert into admission (limit_id, group_value, execution_id, attempt, rank, turn, ready_at, since, held, allowed,
                rated, cost, admitted_at)
            select h.limit_id, h.group_value, h.id, h.next_attempt, h.rank,
                case when h.limit_id = h.fair_limit then h.turn else 0 end, h.ready_at,
                case when h.limit_id = h.gate_limit and (h.fair_limit is null or h.fair_limit = h.gate_limit) then h.since
                     else clock_timestamp() end,
                least(ceil(h.held + sum(coalesce(h.cost, 1)) over (partition by h.limit_id, h.group_value
                                                                 order by h.rank, h.turn, h.ready_at, h.id)), 2147483647),
                least(ceil(h.allowed), 2147483647), h.rated, h.cost, h.admitted_at
            from held h where h.allowed is not null
        )
        select kind, queue, envelope, array_agg(id order by rank, turn, ready_at, id) as ids,
            array_agg(id) filter (where timed) as timed, bool_or(rank <> 0) as prior
        from moved group by kind, queue, envelope
    loop
        if r.timed is not null then
            perform set_clocks(r.timed);
        end if;
        v_messages := v_messages || place_ready(r.kind, r.queue, r.ids, r.envelope, r.prior, false, true);
    end loop;
    if exists (select from unnest(p_rooms) m where m.allowed = 'Infinity') then
        insert into budget_entry as y (owner, unit, execution_id, attempt, reserved)
        select s.group_value::uuid, l.unit, s.execution_id, s.attempt, s.cost
        from unnest(p_candidates) c cross join unnest(c.keys) k
        join concurrency_limit l on l.id = k.limit_id and l.budget = l.id
        join slot s on s.limit_id = k.limit_id and s.group_value = k.group_value and s.execution_id = c.id
        on conflict (owner, unit, execution_id, attempt) do update set reserved = excluded.reserved, spent = null;
    end if;
    -- Under a limit with `when_full: cancel_running`, older executions give way to new ones. Older executions that hold no slot
    -- now give way, too.
    for r in
        select k.limit_id, k.group_value, l.max from unnest(p_candidates) c cross join unnest(c.keys) k
        join concurrency_limit l on l.id = k.limit_id and l.when_full = 'cancel_running'
        where c.attempt = 0 group by k.limit_id, k.group_value, l.max order by k.limit_id, k.group_value
    loop
        perform give_way((r.limit_id, r.group_value)::limit_key, r.max);
        v_gives_way := true;
    end loop;
    if v_gives_way then
        v_messages := v_messages || timers_set((select min(due_at) from timer where kind = 'yield' and due_at <= clock_timestamp()));
    end if;
    return v_messages;
end $$;
