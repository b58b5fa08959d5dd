-- Return the priorities of tasks: for each, that of its workflow in `p_parents`. Return null if all of them are 0.
-- planner: lookups_planned_once
create or replace function inherited_priorities(p_parents uuid[]) returns smallint[]
language plpgsql stable
as $$
begin
    if not exists (select from execution where id = any (p_parents) and priority <> 0) then
        return null;
    end if;
    return array(
        select coalesce((select e.priority from execution e where e.id = d.parent), 0)
        from unnest(p_parents) with ordinality d (parent, place) order by d.place);
end $$;
