-- Choose the next executions to start under the keys `p_gates`, and take them out of their lanes. No lane at these gates may need
-- a second key. One query reads the first waiters of each key, as many as the key has room for. A lane without a live worker
-- stands aside first, and the query is repeated. `p_rooms` is the room of each key before the choice. `p_again` are the keys
-- under which more executions may be able to start. The caller holds the locks of the keys. Two cases are special:
-- - Another transaction has locked a chosen execution, perhaps to cancel it. The execution is skipped, and no later one with the
--   same keys starts. If that transaction ends the execution, it promotes the next ones itself. In case it does not, a wake row
--   makes an executor look at the key again in 100 ms.
-- - The key has costs. Then an execution starts if its cost and the costs of all executions before it fit together. Their number
--   is not known in advance, so the query reads a few waiters, and more if all of these fit.
-- planner: lookups
create or replace function choose_at_once(
    p_gates limit_key[], out p_chosen candidate[], out p_rooms room[], out p_again limit_key[]
)
language plpgsql
as $$
declare
    v_most constant integer := 1000;
    v_few integer := 16;
    v_weighted boolean;
    v_away boolean;
    v_locked uuid[];
    v_stuck limit_key[] := '{}';
begin
    p_rooms := key_room(p_gates);
    v_weighted := (select bool_or(m.weighted) from unnest(p_rooms) m);
    loop
        select coalesce(array_agg(x.c), '{}'), bool_or((x.c).away) into p_chosen, v_away from (
            select (w.execution_id, l.namespace_id, s.kind, s.queue, s.envelope, s.away_since is not null, null, w.rank, w.ready_at,
                l.keys, l.id, l.fair_limit, null, null, w.turn, greatest(w.since, l.moved_at), l.gate_limit, w.costs)::candidate as c,
                case when m.weighted then sum(least(coalesce(w.costs[1], 1), m.allowed)) over places <= m.free
                    else row_number() over places <= least(m.free, v_most) end as first
            from unnest(p_rooms) m
            cross join lateral (
                select case when m.weighted then v_few else least(m.free, v_most)::integer end as most) n
            cross join lateral (
                select * from lane l where l.gate_limit = m.limit_id and l.gate_group = m.group_value
                order by l.rank, l.place, l.ready_at, l.execution_id limit n.most) l
            join namespace s on s.id = l.namespace_id
            cross join lateral (
                select * from waiter w
                where w.lane = l.id
                    and (w.rank, w.turn, w.ready_at, w.execution_id) >= (l.rank, l.turn, l.ready_at, l.execution_id)
                order by w.rank, w.turn, w.ready_at, w.execution_id limit n.most) w
            window places as (partition by m.limit_id, m.group_value order by w.rank, w.turn, w.ready_at, w.execution_id)
        ) x where x.first;
        if v_weighted and v_few < v_most and exists (
            select from unnest(p_chosen) c join unnest(p_rooms) m
                on m.limit_id = (c.keys[1]).limit_id and m.group_value = (c.keys[1]).group_value and m.weighted
            group by m.limit_id, m.group_value having count(*) >= v_few)
        then
            v_few := least(v_few * 8, v_most);
            continue;
        end if;
        exit when v_away is not true;
        perform stand_aside(array(
            select l.id from unnest(p_gates) k join lane l on l.gate_limit = k.limit_id and l.gate_group = k.group_value
            join namespace n on n.id = l.namespace_id and n.away_since is not null));
    end loop;
    v_locked := array(select e.id from execution e where e.id = any (array(select c.id from unnest(p_chosen) c))
                      and e.status = 'queued' for no key update skip locked);
    if cardinality(v_locked) < cardinality(p_chosen) then
        v_stuck := array(select distinct c.keys[1] from unnest(p_chosen) c where c.id <> all (v_locked));
        insert into wake (limit_id, group_value, at)
        select k.limit_id, k.group_value, clock_timestamp() + interval '100 milliseconds' from unnest(v_stuck) k;
        p_chosen := array(
            select c from unnest(p_chosen) c
            where not exists (
                select from unnest(p_chosen) s
                where s.id <> all (v_locked) and s.keys = c.keys
                    and (s.rank, s.turn, s.ready_at, s.id) <= (c.rank, c.turn, c.ready_at, c.id)));
        v_locked := array(select c.id from unnest(p_chosen) c);
    end if;
    perform leave_line(v_locked, true);
    p_again := array(select (m.limit_id, m.group_value)::limit_key from unnest(p_rooms) m
                     where (m.rated or case when m.weighted then v_few = v_most else m.free > v_most end) and (m.limit_id, m.group_value)::limit_key <> all (v_stuck));
end $$;
