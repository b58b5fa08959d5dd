-- Answers an inquiry, once: respond, timeout and cancel have one winner, which is who moves the execution out of
-- waiting. The answer becomes the execution's result. Returns what it staged and, as `moved`, the execution.
create function answer_inquiry(p_execution uuid, p_response text, p_by text) returns setof staged
language plpgsql
as $$
declare
    v_parent uuid;
begin
    update execution set status = 'completed', finished_at = clock_timestamp(), reason = 'answered by ' || p_by
    where id = p_execution and status = 'waiting'
    returning parent into v_parent;
    if not found then
        return;
    end if;
    update inquiry set status = 'responded', response = p_response::jsonb, responder = p_by,
        answered_at = clock_timestamp()
    where execution_id = p_execution;
    insert into result (execution_id, result) values (p_execution, p_response::jsonb);
    delete from live where execution_id = p_execution;
    delete from timer where execution_id = p_execution;
    if v_parent is null then
        insert into finished (ids) values (array[p_execution]);
    end if;
    return query select null::bigint, 'moved', array[p_execution];
    return query select * from stage('execution.completed', array[p_execution], 1);
    return query select * from leave_limits(array[p_execution]);
end $$;

-- Inquiries that nobody answered in time: their default is the answer, or the execution ends as timeout.
create function expire_inquiries(p_limit integer) returns setof staged
language plpgsql
as $$
declare
    r record;
begin
    for r in
        select execution_id, default_answer from inquiry
        where status = 'created' and due_at <= clock_timestamp()
        order by due_at limit p_limit for update skip locked
    loop
        if r.default_answer is not null then
            return query select * from answer_inquiry(r.execution_id, r.default_answer::text, 'its default');
        else
            return query select * from end_executions(array[r.execution_id], array['waiting'], 'timeout',
                'nobody answered its inquiry in time', null);
        end if;
        update inquiry set status = 'timeout', answered_at = clock_timestamp()
        where execution_id = r.execution_id and status = 'created';
    end loop;
end $$;
