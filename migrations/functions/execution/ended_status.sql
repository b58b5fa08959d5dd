-- What an execution becomes whose attempt has come to p_status. What was asked to end as something ends so, unless it completed; a
-- durable function that cleans up (it runs all the same) goes on where its attempt was only handed back.
create or replace function ended_status(p_was text, p_ends_as text, p_status text) returns text
language sql immutable
as $$
    select case
        when p_status = 'completed' or p_ends_as is null then p_status
        when p_was = 'canceling' or p_status not in ('requested', 'waiting') then p_ends_as
        else p_status end
$$;
