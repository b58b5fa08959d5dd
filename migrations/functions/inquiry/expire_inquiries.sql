-- Inquiries that nobody answered in time: their default is the answer, or the execution ends as timeout. The rows of
-- the executions are locked first, and all keys next, as whoever answers does; one that is just being answered is skipped.
create or replace function expire_inquiries(p_limit integer) returns setof staged
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_ids uuid[];
    r record;
begin
    select array_agg(x.id) into v_ids from (
        select id from execution
        where status = 'waiting' and id = any (array(
            select i.execution_id from inquiry i join execution e on e.id = i.execution_id
            where i.status = 'created' and i.due_at <= v_now and e.status = 'waiting' order by i.due_at limit p_limit))
        order by id for no key update skip locked
    ) x;
    if v_ids is null then
        return;
    end if;
    perform lock_keys(array(select distinct k from execution e cross join unnest(e.keys) k where e.id = any (v_ids)));
    for r in
        select execution_id, default_answer from inquiry
        where execution_id = any (v_ids) and status = 'created' and default_answer is not null
    loop
        return query select * from answer_inquiry(r.execution_id, r.default_answer::text, 'its default');
    end loop;
    return query select * from end_executions(v_ids, array['waiting'], 'timeout',
        'nobody answered its inquiry in time', null);
end $$;
