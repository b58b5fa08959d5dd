-- End the outbox leases of a process that has ended, so that other processes take its rows now. Return the envelopes among these
-- rows, which the caller publishes. The consumers of other rows poll them.
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
