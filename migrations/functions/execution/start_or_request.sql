-- Whoever creates executions starts those that nobody else has to decide on: no limit covers them, so nothing is locked but
-- their own rows. What is left asks an executor: it may have to wait for the locks of its limits' keys, and who creates it may
-- be a caller's transaction that stays open for long.
-- planner: lookups_planned_once
create or replace function start_or_request(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
    v_started integer;
begin
    select messages, started into v_messages, v_started from start_executions(p_ids);
    if v_started < cardinality(p_ids) then
        v_messages := v_messages || stage('execution.requested',
            array(select e.id from execution e where e.id = any (p_ids) and e.status = 'requested' order by e.id), 50);
    end if;
    return v_messages;
end $$;
