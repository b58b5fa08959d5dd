-- Release: free these slots, take the executions without one out of their lanes, let those of p_line (null: none) join their lanes,
-- and promote the next waiters. The caller has moved the rows of these executions in this transaction (rows before keys), so no
-- other transaction admits one of them meanwhile.
-- planner: lookups
create or replace function release(p_held held[], p_line candidate[]) returns message[]
language plpgsql
as $$
declare
    v_keys limit_key[] := array(
        select (k.limit_id, k.group_value)::limit_key from (select distinct limit_id, group_value from unnest(p_held)) k);
    v_joined limit_key[] := array(select distinct k from unnest(p_line) c cross join unnest(c.keys) k);
    v_locked limit_key[] := v_keys || v_joined;
    v_freed uuid[];
    v_waiting uuid[];
begin
    -- An execution that only waits frees nothing: no other keys are locked. A caller that refuses newcomers holds these already.
    if exists (select from unnest(p_held) h join slot s
               on s.limit_id = h.limit_id and s.group_value = h.group_value and s.execution_id = h.execution_id) then
        v_locked := keys_around(v_locked);
    end if;
    perform lock_keys(v_locked);
    -- Each is looked up, whatever the plan was made for: a scan of all slots would do as well for a table that is small.
    with freed as (
        delete from slot where ctid = any (array(
            select x.ctid from unnest(p_held) h cross join lateral (
                select s.ctid from slot s where s.limit_id = h.limit_id and s.group_value = h.group_value
                    and s.execution_id = h.execution_id offset 0) x))
        returning execution_id
    )
    select array_agg(execution_id) into v_freed from freed;
    v_waiting := array(select h.execution_id from unnest(p_held) h except select unnest(v_freed));
    if v_waiting <> '{}' then
        perform leave_line(v_waiting, false);
    end if;
    if p_line <> '{}' then
        perform join_line(find_lanes(p_line));
    end if;
    return promote(v_keys || v_joined);
end $$;
