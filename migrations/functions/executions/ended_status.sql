-- Return the next status of an execution whose attempt ended with p_status. An execution with a requested end gets that end, unless it
-- completed. A durable function that cleans up still runs, and goes on where its attempt was only handed back.
create or replace function ended_status(p_was text, p_ends_as text, p_status text) returns text
language sql immutable
as $$
    select case
        when p_status = 'completed' or p_ends_as is null then p_status
        when p_was = 'canceling' or p_status not in ('requested', 'waiting') then p_ends_as
        else p_status end
$$;
