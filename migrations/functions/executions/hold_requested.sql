-- Hold the requested executions among `p_ids` that a hold covers, and the tasks of paused workflows. This includes due retries.
-- Return the other executions, which may be scheduled. Executions under a hold keep the instant at which they became ready.
-- planner: lookups
create or replace function hold_requested(p_ids uuid[]) returns uuid[]
language plpgsql
as $$
declare
    v_paused uuid[];
    v_covered uuid[];
begin
    v_paused := array(
        select e.id from execution e join paused_workflow p on p.execution_id = e.parent where e.id = any (p_ids));
    v_covered := array(
        select e.id from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (p_ids) and n.hold is not null);
    if v_paused = '{}' and v_covered = '{}' then
        return p_ids;
    end if;
    perform from execution where id = any (v_paused || v_covered) and status = 'requested' order by id for no key update;
    update execution set not_before = held_until(), reason = case when ends_as is null then 'its workflow is paused' else reason end
    where id = any (v_paused) and status = 'requested';
    with moved as ( -- a task that the statement before has held is not due any more
        update execution set not_before = held_until(), reason = case when ends_as is null then 'it is held' else reason end
        where id = any (v_covered) and status = 'requested' and (not_before is null or not_before <= clock_timestamp())
        returning id, namespace_id, priority, ready_at, timed
    ), unset as (
        delete from timer where execution_id in (select id from moved where timed) and kind = 'start'
    )
    insert into held_execution (execution_id, namespace_id, rank, ready_at)
    select id, namespace_id, -priority, ready_at from moved order by id
    on conflict do nothing;
    return array(select x from unnest(p_ids) x where x <> all (v_paused || v_covered));
end $$;
