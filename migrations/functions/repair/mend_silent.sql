-- I10e. Who waits for an answer to a question that is not there runs again, and asks again.
create or replace function mend_silent(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    with moved as (
        update execution e set status = 'requested', ready_at = clock_timestamp(),
            reason = 'its inquiry was lost (penstock repair)'
        from namespace n
        where e.id = any (p_ids) and e.status = 'waiting' and n.id = e.namespace_id and n.queue like 'work.%'
            and not exists (select from inquiry i where i.execution_id = e.id and i.status = 'created')
        returning e.id
    )
    select array_agg(id order by id) into v_ids from moved;
    if v_ids is not null then
        delete from inquiry where execution_id = any (v_ids);
        insert into live (execution_id) select unnest(v_ids) on conflict do nothing;
        return query select * from stage('execution.requested', v_ids, 50);
        return query select * from release(v_ids);
    end if;
end $$;
