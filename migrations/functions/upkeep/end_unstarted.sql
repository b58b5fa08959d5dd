-- End the executions among `p_ids` that have expired: no worker has ever begun them. An execution that has begun once is left
-- alone, and so are its retries.
-- planner: lookups
create or replace function end_unstarted(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_new uuid[];
begin
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
    v_new := array(select id from execution where id = any (p_ids) and attempt = 0);
    return (end_executions(v_new, array['requested', 'queued', 'scheduled'], 'timeout',
        'it had not begun when it expired', null)).messages;
end $$;
