-- Write the inquiries of executions that have just become waiting, stage a message of each, and raise `penstock.inquiry.opened`.
-- An inquiry without a timeout gets that of the execution's options or of its action, if there is one. An execution that went on
-- with an answer may ask again: the new question replaces the old one in its row. Its earlier answers are kept with its attempts.
-- planner: lookups
create or replace function ask_inquiries(p_ids uuid[], p_asked jsonb[]) returns message[]
language plpgsql
as $$
declare
    v_details jsonb[];
    v_messages message[] := '{}';
begin
    insert into inquiry (execution_id, prompt, schema, assignee, default_answer, due_at)
    select a.id, a.asked ->> 'prompt', nullif(a.asked -> 'schema', 'null'), a.asked ->> 'assignee',
        nullif(a.asked -> 'default', 'null'),
        clock_timestamp() + make_interval(secs => coalesce((a.asked ->> 'timeout')::double precision,
            timeout_of(p.options, f.body, 'waiting', null)))
    from unnest(p_ids, p_asked) as a (id, asked)
    join execution e on e.id = a.id
    join definition f on f.id = e.definition_id
    left join payload p on p.execution_id = a.id
    on conflict (execution_id) do update set status = 'created', prompt = excluded.prompt, schema = excluded.schema,
        assignee = excluded.assignee, default_answer = excluded.default_answer, due_at = excluded.due_at,
        created_at = clock_timestamp(), answered_at = null, responder = null, response = null
    where inquiry.status <> 'created';
    if is_asked('penstock.inquiry.opened') then
        v_details := array(
            select jsonb_build_object('prompt', i.prompt, 'assignee', i.assignee, 'due_at', instant_text(i.due_at))
            from unnest(p_ids) with ordinality d (id, place) left join inquiry i on i.execution_id = d.id order by d.place);
        v_messages := raise_execution_events('penstock.inquiry.opened', p_ids, v_details);
    end if;
    return v_messages || stage('inquiry.created', array(
        select execution_id from inquiry where execution_id = any (p_ids) order by execution_id), 50);
end $$;
