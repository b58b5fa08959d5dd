-- Delete the holds that are over: the time of the hold has ended, or all executions that it held were released. Return true if a
-- hold was deleted. The caller has locked the rules.
create or replace function end_holds() returns boolean
language plpgsql
as $$
begin
    delete from hold h
    where h.until <= clock_timestamp()
        or h.releasing_since is not null and not exists (
            select from held_execution x join namespace n on n.id = x.namespace_id where is_covered(h.kind, h.name, n));
    if not found then
        return false;
    end if;
    perform mark_holds(null);
    return true;
end $$;
