-- Hold the tasks of paused workflows among `p_ids`, due retries as well as first starts. Return the other executions, which
-- may be scheduled.
-- planner: lookups
create or replace function hold_paused(p_ids uuid[]) returns uuid[]
language plpgsql
as $$
declare
    v_held uuid[];
begin
    v_held := array(select e.id from execution e join paused_workflow p on p.execution_id = e.parent where e.id = any (p_ids));
    if v_held = '{}' then
        return p_ids;
    end if;
    perform from execution where id = any (v_held) and status = 'requested' order by id for no key update;
    update execution set not_before = held_until(), reason = 'its workflow is paused'
    where id = any (v_held) and status = 'requested';
    return array(select x from unnest(p_ids) x where x <> all (v_held));
end $$;
