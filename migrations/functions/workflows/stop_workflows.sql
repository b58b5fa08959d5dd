-- Ask running workflows to stop as `p_status`; their next advance cancels the open tasks. A second request counts only while
-- the exit task runs: then that is cancelled too. `stopping` are the workflows for which the request counted.
create or replace function stop_workflows(
    p_ids uuid[], p_status text, p_reason text, out messages message[], out stopping uuid[]
)
language plpgsql
as $$
begin
    perform make_workflows(p_ids); -- a workflow may have started to run since the locks were taken
    with asked as (
        update workflow w set stop_status = coalesce(w.stop_status, p_status), stop_reason = coalesce(w.stop_reason, p_reason),
            stops = w.stops + 1
        from execution e
        where w.execution_id = any (p_ids) and (w.stop_status is null or w.head ->> 'phase' = 'exiting')
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
