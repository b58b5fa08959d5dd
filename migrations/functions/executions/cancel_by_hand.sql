-- Request that executions end as cancelled, for a person or a caller of the API. A second request also ends the exit task of a
-- workflow, and the cleanup of a durable function. The results are those of request_ends.
create or replace function cancel_by_hand(
    p_ids uuid[], p_reason text,
    out messages message[], out canceling uuid[], out stopping uuid[], out moved uuid[]
)
language plpgsql
as $$
begin
    select r.messages, r.canceling, r.stopping, r.moved into messages, canceling, stopping, moved
    from request_ends(p_ids, 'cancelled', p_reason, true) r;
end $$;
