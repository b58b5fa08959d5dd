-- Return the `not_before` of an execution that is held: its workflow is paused, or a hold covers it. The instant is far in the
-- future, so the execution is never due before it is released.
create or replace function held_until() returns timestamptz
language sql immutable
as $$
    select timestamptz '9000-01-01 00:00:00+00'
$$;
