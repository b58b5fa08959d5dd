-- Request that executions end as cancelled, but not by hand. The results are those of request_ends.
create or replace function cancel_executions(
    p_ids uuid[], p_reason text,
    out messages message[], out canceling uuid[], out stopping uuid[], out moved uuid[]
)
language plpgsql
as $$
begin
    select s.messages, s.canceling, s.stopping, s.moved into messages, canceling, stopping, moved
    from stop_executions(p_ids, 'cancelled', p_reason) s;
end $$;
