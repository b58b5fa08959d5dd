-- Frees slots and promotes who waits for them. Call it after the rows were moved (rows before keys).
-- planner: lookups
create or replace function free_slots(p_held held[]) returns message[]
language plpgsql
as $$
begin
    perform lock_keys(keys_around(array(select distinct h.key from unnest(p_held) h)));
    return give_back(p_held);
end $$;
