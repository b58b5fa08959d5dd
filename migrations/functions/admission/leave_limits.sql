-- Frees the slots of executions that ended or went back in any way, or takes them out of their line, and promotes who
-- waits for them. Whoever moves rows of executions himself calls this after it, in the same transaction; for those without
-- limits it does nothing.
-- planner: lookups
create or replace function leave_limits(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_held held[];
    v_keys text[];
    v_lanes text[];
begin
    select array_agg((x.id, x.key)::held order by x.key) into v_held
    from (select e.id, unnest(e.keys) as key from execution e where e.id = any (p_ids)) x;
    if v_held is null then
        return '{}';
    end if;
    -- Who only waits frees nothing: no other keys are locked, and whoever refuses newcomers holds these already.
    v_keys := array(select distinct h.key from unnest(v_held) h);
    if exists (select from unnest(v_held) h join slot s on s.key = h.key and s.execution_id = h.execution_id) then
        v_keys := keys_around(v_keys);
    end if;
    perform lock_keys(v_keys);
    with gone as (
        delete from waiter where execution_id = any (array(select distinct h.execution_id from unnest(v_held) h))
        returning lane
    )
    select array_agg(distinct lane) into v_lanes from gone;
    if v_lanes is not null then
        perform find_heads(v_lanes);
    end if;
    return give_back(v_held);
end $$;
