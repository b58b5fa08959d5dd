-- Take back the slots of at most `p_limit` scheduled executions that were admitted before the breaker of a key in `p_keys`
-- opened. The executions return to their lanes at their old places. A locked row is skipped, since a worker may be claiming it
-- under an older snapshot. Return null if there is no such execution, or if all of their rows are locked. In the latter case, a
-- wake row makes an executor look again. The caller holds no lock of a key, since rows are locked before keys.
-- planner: lookups
create or replace function return_blocked(p_keys limit_key[], p_limit integer) returns message[]
language plpgsql
as $$
declare
    v_blocked uuid[];
    v_ids uuid[];
begin
    v_blocked := array(
        select s.execution_id
        from unnest(p_keys) k join breaker b on b.limit_id = k.limit_id and b.group_value = k.group_value
        join slot s on s.limit_id = b.limit_id and s.group_value = b.group_value and s.admitted_at < b.opened_at
        join execution e on e.id = s.execution_id and e.status = 'scheduled'
        limit p_limit);
    if v_blocked = '{}' then
        return null;
    end if;
    v_ids := array(select x.id from (
        select e.id from execution e where e.id = any (v_blocked) and e.status = 'scheduled'
        order by e.id for no key update skip locked) x);
    if v_ids = '{}' then
        insert into wake (limit_id, group_value, at)
        select k.limit_id, k.group_value, clock_timestamp() + interval '100 milliseconds' from unnest(p_keys) k
        join breaker b on b.limit_id = k.limit_id and b.group_value = k.group_value;
        return null;
    end if;
    update execution set status = 'requested', since = clock_timestamp(),
        reason = case when ends_as is null then 'a breaker has opened' else reason end
    where id = any (v_ids);
    delete from parked where execution_id = any (v_ids);
    delete from backlog where execution_id = any (v_ids);
    delete from timer where execution_id = any (v_ids) and kind in ('start', 'queued');
    return settle_moves(null, v_ids, held_by(v_ids));
end $$;
