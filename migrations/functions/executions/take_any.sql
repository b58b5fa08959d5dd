-- Delete at most `p_size` executions of any rank and tenant from the backlog of a queue, and return them. The caller uses this
-- function if take_turn returned none. Then the executions that have the turn are locked by other transactions, or are not
-- scheduled any more. Also delete rows of rank `p_rank` with executions that are not scheduled any more.
-- planner: lookups_planned_once
create or replace function take_any(p_queue text, p_rank smallint, p_size integer) returns uuid[]
language plpgsql
as $$
declare
    v_taken uuid[];
begin
    delete from backlog where ctid = any (array(
        select b.ctid from backlog b
        where b.queue = p_queue and b.rank = p_rank
            and not exists (select from execution e where e.id = b.execution_id and e.status = 'scheduled')
        limit 1000 for update of b skip locked));
    with taken as (
        delete from backlog where ctid = any (array(
            select b.ctid from backlog b join execution e on e.id = b.execution_id and e.status = 'scheduled'
            where b.queue = p_queue
            order by b.rank, b.tenant, b.root_at, b.ready_at, b.execution_id limit p_size
            for update of b skip locked for no key update of e skip locked))
        returning execution_id, rank, root_at, ready_at
    )
    select coalesce(array_agg(execution_id order by rank, root_at, ready_at, execution_id), '{}') into v_taken from taken;
    return v_taken;
end $$;
