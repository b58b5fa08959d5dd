-- Return the `not_before` of an execution that is held until its workflow is resumed.
create or replace function held_until() returns timestamptz
language sql immutable
as $$
    select timestamptz '9000-01-01 00:00:00+00'
$$;
