-- Cancel the queued executions among `p_ids` that need more than is left of a spent budget with `when_spent: refuse`. An
-- execution that fits by now stays queued. It also stays queued while another attempt holds a slot of the budget. That attempt
-- may give back a part, and the next promotion decides.
-- planner: lookups
create or replace function refuse_spent(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[] := array(
        select id from execution where id = any (p_ids) and status = 'queued' order by id for no key update);
    v_keys limit_key[] := array(select distinct k from execution e cross join unnest(e.keys) k where e.id = any (v_ids));
    v_messages message[] := '{}';
    r record;
begin
    perform lock_keys(keys_around(v_keys));
    for r in
        select x.reason, array_agg(x.id order by x.id) as ids from (
            select w.execution_id as id, format('refused: needs %s, and %s of the budget of %s are left',
                amount_text(k.cost, c.unit), amount_text(m.free, ''), amount_text(b.amount, '')) as reason
            from unnest(key_room(v_keys)) m
            join concurrency_limit c on c.id = m.limit_id and c.budget = c.id
            join budget b on b.owner::text = m.group_value and b.unit = c.unit and b.when_spent = 'refuse'
            join waiter w on w.execution_id = any (v_ids)
            join lane l on l.id = w.lane
            cross join lateral unnest(l.keys, w.costs) k (limit_id, group_value, cost)
            where k.limit_id = m.limit_id and k.group_value = m.group_value and k.cost > m.free
                and not exists (select from slot s where s.limit_id = m.limit_id and s.group_value = m.group_value)
        ) x group by x.reason order by x.reason
    loop
        v_messages := v_messages || (end_executions(r.ids, array['queued'], 'cancelled', r.reason, null)).messages;
    end loop;
    return v_messages;
end $$;
