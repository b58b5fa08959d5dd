-- Return the initial state of each execution in `p_ids`, in their order: its status, the keys of its slots, and the
-- instant. The state is null for an execution that is not in `p_admitted`: it is created as requested.
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
