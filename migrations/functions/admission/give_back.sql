-- Frees slots, as free_slots does, for whoever has locked the keys.
-- planner: lookups
create or replace function give_back(p_held held[]) returns message[]
language plpgsql
as $$
begin
    -- Each is looked up, whatever the plan was made for: a scan of all slots would do as well for a table that is small.
    delete from slot where ctid = any (array(
        select x.ctid from unnest(p_held) h cross join lateral (
            select s.ctid from slot s where s.key = h.key and s.execution_id = h.execution_id offset 0) x));
    return promote(array(select distinct h.key from unnest(p_held) h));
end $$;
