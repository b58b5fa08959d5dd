-- Hold scheduled and queued executions that a hold covers. Among the next `p_limit` open executions after `p_after`, take all
-- scheduled ones. Also take at most `p_limit` queued ones. The queued ones are requested again, free their slots, and keep the
-- instant at which they became ready. `next` is the id to continue after, or null at the end.
-- planner: lookups
create or replace function hold_waiting(p_after uuid, p_limit integer, out messages message[], out next uuid)
language plpgsql
as $$
declare
    v_open uuid[];
    v_ids uuid[];
begin
    messages := '{}';
    v_open := array(select execution_id from live where execution_id > p_after order by execution_id limit p_limit);
    next := v_open[cardinality(v_open)];
    v_ids := array(
        select e.id from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (v_open) and e.status = 'scheduled' and n.hold = 'held');
    v_ids := v_ids || array(
        select w.execution_id from lane l join namespace n on n.id = l.namespace_id and n.hold = 'held'
        join waiter w on w.lane = l.id limit p_limit);
    if v_ids = '{}' then
        return;
    end if;
    v_ids := array(select x.id from (
        select id from execution where id = any (v_ids) and status in ('scheduled', 'queued')
        order by id for no key update skip locked) x);
    with moved as (
        update execution set status = 'requested', not_before = held_until(),
            reason = case when ends_as is null then 'it is held' else reason end
        where id = any (v_ids)
        returning id, namespace_id, priority, ready_at
    )
    insert into held_execution (execution_id, namespace_id, rank, ready_at)
    select id, namespace_id, -priority, ready_at from moved order by id
    on conflict do nothing;
    delete from parked where execution_id = any (v_ids);
    delete from backlog where execution_id = any (v_ids);
    delete from timer where execution_id = any (v_ids) and kind in ('start', 'queued');
    messages := settle_moves(null, v_ids, held_by(v_ids));
end $$;
