-- Stage messages again for ends that no process has delivered to their followers for `p_age`, because the messages were lost. One
-- call of this function handles at most `p_limit` ends. An end with a row in the outbox is left out.
create or replace function restage_ends(p_age interval, p_limit integer) returns message[]
language plpgsql
as $$
declare
    v_lost uuid[];
begin
    with found as (
        select u.execution_id from untold u
        where u.since < clock_timestamp() - p_age
            and not exists (select from outbox o where o.queue = 'execution.completed' and u.execution_id = any (o.ids))
        order by u.execution_id limit p_limit for update skip locked
    ), again as (
        update untold u set since = clock_timestamp() from found f where u.execution_id = f.execution_id
        returning u.execution_id
    )
    select array_agg(execution_id order by execution_id) into v_lost from again;
    return stage('execution.completed', v_lost, 100);
end $$;
