-- Delete the rows that belong to executions which are deleted because they are archived.
create or replace function execution_gone() returns trigger
language plpgsql
as $$
begin
    delete from workflow w using gone g where w.execution_id = g.id;
    delete from workflow_task t using gone g where t.execution_id = g.id;
    delete from workflow_variable v using gone g where v.execution_id = g.id;
    delete from workflow_item i using gone g where i.execution_id = g.id;
    delete from workflow_kept k using gone g where k.execution_id = g.id;
    delete from paused_workflow p using gone g where p.execution_id = g.id;
    delete from inquiry q using gone g where q.execution_id = g.id;
    delete from outside_wait w using gone g where w.execution_id = g.id;
    return null;
end $$;

create or replace trigger execution_gone after delete on execution
referencing old table as gone for each statement execute function execution_gone();
