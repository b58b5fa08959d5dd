-- Schedule requested executions that are due, in the transaction that made them ready. Actions that neither a limit nor a hold
-- covers start at once. Executions under limits are staged, and an executor locks their keys later. Tasks of paused workflows and
-- executions under a hold are staged, too. So are executions that another transaction has locked, since the loop of the timers
-- must not wait.
-- planner: lookups
create or replace function schedule_due(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_free uuid[];
    v_messages message[] := '{}';
begin
    v_free := array(
        select e.id from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (p_ids) and e.status = 'requested' and n.kind = 'action' and n.limits = '{}' and n.hold is null
            and not exists (select from paused_workflow p where p.execution_id = e.parent)
        order by e.id for no key update of e skip locked);
    if v_free <> '{}' then
        select s.messages into v_messages from start_executions(v_free) s;
    end if;
    return v_messages || stage('execution.requested', array(
        select id from execution where id = any (p_ids) and status = 'requested' order by id), 50);
end $$;
