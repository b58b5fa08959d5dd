-- Request that executions end as `p_status` (cancelled, timeout), for a reason other than the command of a user. The results are
-- those of request_ends.
create or replace function stop_executions(
    p_ids uuid[], p_status text, p_reason text,
    out messages message[], out canceling uuid[], out stopping uuid[], out moved uuid[]
)
language plpgsql
as $$
begin
    select r.messages, r.canceling, r.stopping, r.moved into messages, canceling, stopping, moved
    from request_ends(p_ids, p_status, p_reason, false) r;
end $$;
