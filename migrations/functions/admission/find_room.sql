-- Split the candidates into `p_free`, which may start now, and `p_waiting`. A candidate waits in these cases: A key that it needs
-- has waiters, or less room than all candidates of the key need. The limit of the key is being regrouped. No live worker runs its
-- namespace. A lane of its namespace stands aside because no worker runs it. `p_keys` and `p_counts` are the results of
-- count_keys. `p_rooms` is the room of each key. The caller holds the locks of all keys.
-- planner: hashed
create or replace function find_room(
    p_asking candidate[], p_keys limit_key[], p_counts integer[],
    out p_free candidate[], out p_waiting candidate[], out p_rooms room[]
)
language plpgsql
as $$
declare
    v_shut constant integer[] := regrouping_limits();
    v_closed limit_key[];
    v_aside integer[];
begin
    p_rooms := key_room(p_keys);
    v_closed := array(
        select (m.limit_id, m.group_value)::limit_key
        from unnest(p_rooms) m join unnest(p_keys, p_counts) c (limit_id, group_value, n) using (limit_id, group_value)
        where m.free < case when m.weighted then (
                select sum(least(coalesce(k.cost, 1), m.allowed))
                from unnest(p_asking) a cross join lateral unnest(a.keys, a.costs) k (limit_id, group_value, cost)
                where k.limit_id = m.limit_id and k.group_value = m.group_value)
            else c.n end
            or m.limit_id = any (v_shut)
            or exists (select from lane l where l.gate_limit = m.limit_id and l.gate_group = m.group_value));
    v_aside := array(
        select n.id from (select distinct c.namespace_id as id, c.away from unnest(p_asking) c) n
        where n.away or exists (select from lane l where l.namespace_id = n.id and l.gate_kind = 'worker'));
    if v_closed = '{}' and v_aside = '{}' then
        p_free := p_asking;
        return;
    end if;
    select array_agg(x.c) filter (where not x.waits), array_agg(x.c) filter (where x.waits) into p_free, p_waiting
    from (select c, c.namespace_id = any (v_aside) or exists (
              select from unnest(c.keys) k where k = any (v_closed)) as waits from unnest(p_asking) c) x;
end $$;
