-- For each of these ids how its row is born, null where it is requested: what it is once it has started, the keys that
-- it has slots of then, and the instant. Null where nobody looked for room.
-- planner: hashed
create or replace function births(p_ids uuid[], p_admitted candidate[], p_born_at timestamptz) returns birth[]
language plpgsql stable strict
as $$
begin
    return array(
        select case when a.id is not null then (start_status(a.kind), a.keys, p_born_at)::birth end
        from unnest(p_ids) with ordinality d (id, place) left join unnest(p_admitted) a on a.id = d.id
        order by d.place);
end $$;
