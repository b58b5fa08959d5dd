-- Take back the slots of at most `p_limit` scheduled executions that no worker has claimed. Only namespaces that no live worker
-- has run for `p_grace` count. The executions are requested again, and keep their places.
-- planner: lookups
create or replace function return_unclaimed(p_grace interval, p_limit integer) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    if not exists (select from namespace where away_since < clock_timestamp() - p_grace) then
        return '{}';
    end if;
    with found as (
        select e.id from execution e
        join namespace n on n.id = e.namespace_id and n.away_since < clock_timestamp() - p_grace
        where e.status = 'scheduled' and e.id in (select execution_id from slot)
        order by e.id limit p_limit for no key update of e skip locked
    ), moved as (
        update execution e set status = 'requested', since = clock_timestamp(),
            reason = case when e.ends_as is null then 'no live worker serves it' else e.reason end
        from found f where e.id = f.id
        returning e.id
    )
    select array_agg(id) into v_ids from moved;
    return settle_moves(null, v_ids, held_by(v_ids));
end $$;
