-- Return true if an enabled rule or a waiting task asks for events of a system trigger. Otherwise the caller raises no event and
-- writes nothing.
create or replace function is_asked(p_trigger text) returns boolean
language sql stable
as $$
    select exists (select from catalog c where c.trigger = p_trigger and c.kind = 'rule' and c.enabled)
        or exists (select from catalog c where c.triggers @> array[p_trigger] and c.kind = 'rule' and c.enabled)
        or exists (select from event_wait w where w.trigger = p_trigger)
$$;
