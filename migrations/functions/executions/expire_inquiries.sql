-- Settle at most `p_limit` inquiries that were not answered in time. Answer one that has a default with it. End the other
-- executions as timeout, or let a durable function clean up first. The rows of the executions are locked before the keys. An
-- execution that another transaction has locked, perhaps to answer it, is skipped. `expired` are the executions that this call of
-- the function handled.
create or replace function expire_inquiries(p_limit integer, out messages message[], out expired uuid[])
language plpgsql
as $$
declare
    v_reason constant text := 'its inquiry got no answer in time';
    v_now timestamptz := clock_timestamp();
    v_messages message[];
    v_told uuid[];
    v_unanswered uuid[] := '{}';
    r record;
begin
    messages := '{}';
    select coalesce(array_agg(x.id), '{}') into expired from (
        select id from execution
        where status = 'waiting' and id = any (array(
            select i.execution_id from inquiry i join execution e on e.id = i.execution_id
            where i.status = 'created' and i.due_at <= v_now and e.status = 'waiting' order by i.due_at limit p_limit))
        order by id for no key update skip locked
    ) x;
    if expired = '{}' then
        return;
    end if;
    perform lock_keys(array(select distinct k from execution e cross join unnest(e.keys) k where e.id = any (expired)));
    for r in
        select execution_id, default_answer from inquiry where execution_id = any (expired)
    loop
        if r.default_answer is null then
            v_unanswered := v_unanswered || r.execution_id;
        else
            messages := messages || (answer_inquiry(r.execution_id, r.default_answer::text, 'its default')).messages;
        end if;
    end loop;
    select t.messages, t.told into v_messages, v_told
    from tell_functions(v_unanswered, 'timeout', v_reason) t;
    messages := messages || v_messages || (end_executions(array(select unnest(v_unanswered) except select unnest(v_told)),
        array['waiting'], 'timeout', v_reason, null)).messages;
end $$;
