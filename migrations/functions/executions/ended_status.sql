-- Return the next status of an execution after an attempt that ended with `p_status`. If an end was requested (`p_ends_as`), it
-- is that end, unless the attempt completed. A durable function that still has to clean up is an exception. If its attempt was
-- handed back or waits, the function goes on.
create or replace function ended_status(p_was text, p_ends_as text, p_status text) returns text
language sql immutable
as $$
    select case
        when p_status = 'completed' or p_ends_as is null then p_status
        when p_was = 'canceling' or p_status not in ('requested', 'waiting') then p_ends_as
        else p_status end
$$;
