-- Of those that came and have to wait, the ones that a limit does not let wait. Only what never ran is turned away:
-- a retry has its place.
create or replace function turn_away(p_wanted wanted[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_new uuid[];
    r record;
    v_free integer;
    v_excess integer;
begin
    if not exists (select from concurrency_limit l
                   where l.id = any (array(select split_part(unnest(w.keys), ':', 1)::integer from unnest(p_wanted) w))
                       and (l.when_full <> 'enqueue' or l.max_waiting is not null)) then
        return '{}';
    end if;
    v_new := array(select w.id from unnest(p_wanted) w where w.attempt = 0);
    for r in
        select l.gate as key, c.ref, c.max, c.when_full, c.max_waiting,
            array_agg(x.execution_id order by x.rank, x.turn, x.ready_at, x.execution_id) as ids
        from waiter x join lane l on l.id = x.lane
        join concurrency_limit c on c.id = case when l.gate ~ '^[0-9]' then split_part(l.gate, ':', 1)::integer end
        where x.execution_id = any (v_new)
        group by l.gate, c.id
        having c.when_full <> 'enqueue' or c.max_waiting is not null
        order by l.gate
    loop
        -- For very many there is room that is given away bit by bit.
        v_free := (select m.free from key_room(array[r.key]) m);
        if r.when_full = 'cancel_new' then
            v_messages := v_messages || (end_executions(r.ids[v_free + 1:], array['queued'], 'cancelled',
                format('refused: the limit %s is full', r.ref), null)).messages;
            continue;
        end if;
        if r.max_waiting is not null then
            -- Counted no further than it takes to know how many are too many.
            select count(*) - r.max_waiting - v_free into v_excess
            from (select from lane l join waiter w on w.lane = l.id where l.gate = r.key
                  limit r.max_waiting::bigint + v_free + cardinality(r.ids)) x;
            if v_excess > 0 then
                v_messages := v_messages || (end_executions(r.ids[cardinality(r.ids) - v_excess + 1:], array['queued'],
                    'cancelled', format('refused: %s already wait for the limit %s', r.max_waiting, r.ref), null)).messages;
            end if;
        end if;
        if r.when_full = 'cancel_running' then
            perform give_way(r.key, r.max);
        end if;
    end loop;
    return v_messages;
end $$;
