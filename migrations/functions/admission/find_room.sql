-- Split these executions into those that may start at once and those that have to wait. An execution waits if it needs a key with
-- waiters before it, or one for which more executions come than there is room. It also waits if no live worker runs it, or if executions
-- of its namespace stand aside already. The caller holds the locks of all their keys, and has counted them (count_keys).
-- planner: hashed
create or replace function find_room(
    p_asking candidate[], p_keys limit_key[], p_counts integer[],
    out p_free candidate[], out p_waiting candidate[], out p_rooms room[]
)
language plpgsql
as $$
declare
    v_closed limit_key[];
    v_aside integer[];
begin
    p_rooms := key_room(p_keys);
    v_closed := array(
        select (m.limit_id, m.group_value)::limit_key
        from unnest(p_rooms) m join unnest(p_keys, p_counts) c (limit_id, group_value, n) using (limit_id, group_value)
        where m.free < c.n
            or exists (select from lane l where l.gate_limit = m.limit_id and l.gate_group = m.group_value));
    v_aside := array(
        select n.id from (select distinct c.namespace_id as id, c.away from unnest(p_asking) c) n
        where n.away or exists (select from lane l where l.namespace_id = n.id and l.gate_kind <> 'limit'));
    if v_closed = '{}' and v_aside = '{}' then
        p_free := p_asking;
        return;
    end if;
    select array_agg(x.c) filter (where not x.waits), array_agg(x.c) filter (where x.waits) into p_free, p_waiting
    from (select c, c.namespace_id = any (v_aside) or exists (
              select from unnest(c.keys) k where k = any (v_closed)) as waits from unnest(p_asking) c) x;
end $$;
