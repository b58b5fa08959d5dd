-- Return a hint for executors that a timer was set, if it is due before they would look without a hint (fire_timers.RECHECK).
-- Otherwise return an empty array.
create or replace function timers_set(p_due timestamptz) returns message[]
language sql
as $$
    select case when p_due < clock_timestamp() + interval '10 seconds' then array[(0, 'timers.set', '{}')::message] else '{}' end
$$;
