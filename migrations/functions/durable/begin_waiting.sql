-- Begin the waits of executions that have just become waiting. `p_asked` says for each execution what it waits for. With
-- `awaits`, it is a durable function, which is suspended. With `outside`, it waits for something outside. Any other value is an
-- inquiry, which is written. A durable function with a requested end is woken at once. A breaker counts only calls that are under
-- way, and a waiting execution is none. So the next execution may start there, even though the slot is kept.
create or replace function begin_waiting(p_ids uuid[], p_asked jsonb[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_ids uuid[];
    v_asked jsonb[];
begin
    select array_agg(a.id), array_agg(a.asked) into v_ids, v_asked
    from unnest(p_ids, p_asked) as a (id, asked) where not a.asked ?| array['awaits', 'outside'];
    if v_ids is not null then
        v_messages := ask_inquiries(v_ids, v_asked);
    end if;
    select array_agg(a.id), array_agg(a.asked -> 'awaits') into v_ids, v_asked
    from unnest(p_ids, p_asked) as a (id, asked) where a.asked ? 'awaits';
    if v_ids is not null then
        v_messages := v_messages || suspend_functions(v_ids, v_asked);
    end if;
    select array_agg(a.id), array_agg(a.asked) into v_ids, v_asked
    from unnest(p_ids, p_asked) as a (id, asked) where a.asked ? 'outside';
    if v_ids is not null then
        v_messages := v_messages || wait_outside(v_ids, v_asked);
    end if;
    -- An attempt that waits does not count as a call of the breaker. If it keeps its slots, no release promotes the next
    -- execution, so wake rows do: one for now, and one for the time after a probe.
    insert into wake (limit_id, group_value, at)
    select distinct k.limit_id, k.group_value, clock_timestamp() + d.later
    from execution e cross join unnest(e.keys) k
    join concurrency_limit l on l.id = k.limit_id and l.breaker is not null
    cross join lateral (values (interval '0'), (make_interval(secs => (l.breaker ->> 'probe')::float8))) d (later)
    where e.id = any (p_ids) and e.status = 'waiting' and keeps_slots(e.keys);
    if found then
        v_messages := v_messages || timers_set(clock_timestamp());
    end if;
    return v_messages || wake_functions(array(
        select id from execution where id = any (p_ids) and ends_as is not null order by id), 'its end is requested');
end $$;
