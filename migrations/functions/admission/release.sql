-- Release, for executions that ended or went back in any way: frees their slots or takes them out of line, and promotes who
-- comes next. Whoever moves rows of executions calls this after it, in the same transaction; for those without limits it does
-- nothing.
-- planner: lookups
create or replace function release(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_held held[];
begin
    select array_agg((x.id, (x.key).limit_id, (x.key).group_value)::held) into v_held
    from (select e.id, unnest(e.keys) as key from execution e where e.id = any (p_ids)) x;
    if v_held is null then
        return '{}';
    end if;
    return release_slots(v_held);
end $$;
