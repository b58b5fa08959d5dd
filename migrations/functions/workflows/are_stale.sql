-- Return true if one of the definitions `p_known`, to which the caller resolved `p_refs` earlier, is no longer current or
-- enabled.
-- planner: lookups_planned_once
create or replace function are_stale(p_refs text[], p_known integer[]) returns boolean
language plpgsql
as $$
begin
    return exists (
        select from unnest(p_refs, p_known) as k (ref, id)
        where not exists (select from catalog c where c.kind = any ('{action,workflow}') and c.ref = k.ref
                          and c.definition_id = k.id and c.enabled));
end $$;
