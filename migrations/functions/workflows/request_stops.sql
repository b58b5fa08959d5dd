-- Ask running workflows to stop as `p_status`. Their next advance cancels the open tasks. `stopping` are the workflows for which
-- the request counted. The first request counts. A later request, or one while the exit task is due or runs, counts only if it is
-- by hand. No request counts before the workflow has handled the one before. A second request also ends tasks that are cleaning
-- up, and cancels the exit task. If the first one comes during the exit task, it cancels nothing, since all other tasks have
-- ended.
create or replace function request_stops(
    p_ids uuid[], p_status text, p_reason text, p_by_hand boolean, out messages message[], out stopping uuid[]
)
language plpgsql
as $$
begin
    perform make_workflows(p_ids); -- a workflow may have started to run after the locks were taken
    with asked as (
        update workflow w set stop_status = coalesce(w.stop_status, p_status), stop_reason = coalesce(w.stop_reason, p_reason),
            stops = w.stops + 1
        from execution e
        where w.execution_id = any (p_ids) and case w.head ->> 'phase' when 'exiting' then p_by_hand
                when 'stopping' then p_by_hand or w.stop_status is null else w.stop_status is null end
            and w.stops <= coalesce((w.head ->> 'stops')::integer, 0)
            and e.id = w.execution_id and e.status = 'running'
        returning w.execution_id
    )
    select coalesce(array_agg(execution_id), '{}') into stopping from asked;
    messages := '{}';
    if stopping <> '{}' then
        delete from paused_workflow where execution_id = any (stopping);
        messages := stage('workflow.started', stopping, 1);
    end if;
end $$;
