-- Repair invariant I5w: take executions that are not queued out of their lanes. Request queued executions again that are in no
-- lane. These get their old places, by the instant at which they became ready. Set the first execution of each lane again.
-- `p_ids` are ids of executions and of lanes.
create or replace function mend_lines(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_lanes uuid[];
    v_keys limit_key[];
    v_again uuid[];
    v_messages message[] := '{}';
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    v_lanes := array(select id from lane where id = any (p_ids)
                     union select lane from waiter where execution_id = any (p_ids));
    v_keys := array(select k from lane l cross join unnest(l.keys) k where l.id = any (v_lanes)
                    union select k from execution e cross join unnest(e.keys) k where e.id = any (p_ids));
    perform lock_keys(v_keys);
    delete from waiter w where w.execution_id = any (p_ids)
        and (not exists (select from execution e where e.id = w.execution_id and e.status = 'queued')
             or not exists (select from lane l where l.id = w.lane));
    with moved as (
        update execution e set status = 'requested',
            reason = case when e.ends_as is null then 'it stood in no line (penstock repair)' else e.reason end
        where e.id = any (p_ids) and e.status = 'queued'
            and not exists (select from waiter w where w.execution_id = e.id)
        returning id
    )
    select array_agg(id) into v_again from moved;
    if v_again is not null then
        v_messages := request_again(v_again);
    end if;
    delete from lane l where l.id = any (v_lanes) and not exists (select from waiter w where w.lane = l.id);
    update lane l set rank = w.rank, turn = w.turn, ready_at = w.ready_at, execution_id = w.execution_id, costs = w.costs
    from unnest(v_lanes) p (id)
    cross join lateral (
        select * from waiter w where w.lane = p.id order by w.rank, w.turn, w.ready_at, w.execution_id limit 1) w
    where l.id = p.id and l.execution_id <> w.execution_id;
    return v_messages || promote(v_keys);
end $$;
