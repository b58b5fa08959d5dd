-- What a process had taken out of the outbox, to publish or to handle it, and had for some time to itself: it is gone, and
-- others may have it now. Returns the envelopes among it, to be published; others are looked for.
create or replace function return_leases(p_holder uuid) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
begin
    with returned as (
        update outbox set due_at = clock_timestamp(), holder = null
        where id in (select id from outbox where holder = p_holder for update skip locked)
        returning id, queue, ids, body
    )
    select coalesce(array_agg((id, queue, ids)::message) filter (where body is null), '{}') into v_messages from returned;
    return v_messages;
end $$;
