-- The room that is left before these keys when all who come now have started, so many for each: below 0 where they are too
-- many, or others stand there. The caller holds the keys' locks.
-- planner: hashed
create or replace function rooms_left(p_keys text[], p_counts integer[]) returns room[]
language plpgsql
as $$
begin
    return array(
        select (m.key, m.held, m.allowed, m.rated,
            case when exists (select from lane l where l.gate = m.key) then -1 else m.free - c.n end)::room
        from key_room(p_keys) m join unnest(p_keys, p_counts) as c (k, n) on c.k = m.key);
end $$;
