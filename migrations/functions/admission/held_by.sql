-- Return the keys of the executions `p_ids`: those that they hold slots of, and those that they wait for. Return null if there
-- are none.
-- planner: lookups
create or replace function held_by(p_ids uuid[]) returns held[]
language plpgsql stable
as $$
begin
    return (
        select array_agg((x.id, (x.key).limit_id, (x.key).group_value)::held)
        from (select e.id, unnest(e.keys) as key from execution e where e.id = any (p_ids)) x);
end $$;
