-- What follows when executions were moved away from where they were, whatever moved them: those that ended are
-- closed, those that are requested again are made ready, and those of them that are under limits (p_held) leave the
-- slots that they held or the lines where they stood to the next ones (I5). Limits come last, all in one call: rows are
-- locked before keys, and keys in one order.
create or replace function settle_moves(p_ended ended[], p_again uuid[], p_held held[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
begin
    if p_ended is not null then
        v_messages := close_executions(p_ended);
    end if;
    if p_again is not null then
        v_messages := v_messages || request_again(p_again);
    end if;
    if p_held is not null then
        v_messages := v_messages || release(p_held);
    end if;
    return v_messages;
end $$;
