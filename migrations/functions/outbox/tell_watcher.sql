-- Notify a watcher how these executions ended, in a JSON array of `[id, status, result, error]`. If that is longer than `p_most`
-- bytes, the notification is `p_which`, and the watcher queries the ends itself. The first check uses the stored sizes. A
-- compressed value is longer as text, so the text is measured, too.
-- planner: lookups_planned_once
create or replace function tell_watcher(p_channel text, p_ids uuid[], p_which text, p_most integer) returns void
language plpgsql
as $$
declare
    v_ends text;
begin
    if (select coalesce(sum(coalesce(pg_column_size(r.result), 0) + coalesce(pg_column_size(r.error), 0)), 0)
        from result r where r.execution_id = any (p_ids)) <= p_most then
        select json_agg(json_build_array(e.id, e.status, r.result::text, r.error::text))::text into v_ends
        from execution e left join result r on r.execution_id = e.id
        where e.id = any (p_ids) and e.finished_at is not null;
    end if;
    perform pg_notify(p_channel, case when octet_length(v_ends) <= p_most then v_ends else p_which end);
end $$;
