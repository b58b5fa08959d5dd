-- Lock at most `p_limit` rows of the history's default partition that are older than `p_days` days. Return them, each with its
-- place (`ctid`) for delete_old_history. Rows that another transaction has locked are skipped. No service may change the history,
-- so the function has the owner's rights.
create or replace function old_history(p_days integer, p_limit integer)
returns table (
    execution_id uuid, at timestamptz, old text, new text, attempt integer, actor text, reason text, ready_at timestamptz,
    place text
)
language plpgsql security definer
as $$
begin
    if p_days < 1 then
        raise exception 'rows of the history are kept for a day at least';
    end if;
    return query
    select h.execution_id, h.at, h.old, h.new, h.attempt, h.actor, h.reason, h.ready_at, h.ctid::text
    from history_default h where h.at < now() - make_interval(days => p_days) limit p_limit for update skip locked;
end $$;
