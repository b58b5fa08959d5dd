-- Wake suspended durable functions: waiting -> requested. A function that runs, has ended or was woken before is left alone,
-- since it checks by itself before it waits. A function with a requested end is also woken from a question, which is closed, and
-- from a wait for something outside. Its next attempt cleans up, and its reason stays that of the request.
-- planner: lookups
create or replace function wake_functions(p_ids uuid[], p_reason text) returns message[]
language plpgsql
as $$
declare
    v_again uuid[];
    v_limited uuid[];
    v_started uuid[];
    v_messages message[] := '{}';
begin
    if p_ids = '{}' then
        return '{}';
    end if;
    -- All rows are locked, whatever their status. A transaction that suspends a function may have checked already and still be
    -- open. This transaction waits for its row, and then finds the function suspended.
    perform from execution where id = any (p_ids) order by id for no key update;
    with ended as (
        select id, ends_as from execution where id = any (p_ids) and status = 'waiting' and ends_as is not null
    ), closed as (
        update inquiry i set status = d.ends_as, answered_at = clock_timestamp()
        from ended d where i.execution_id = d.id and i.status = 'created'
    ), left_outside as (
        update outside_wait w set due_at = null from ended d where w.execution_id = d.id and w.settled_at is null
    ), suspensions as (
        delete from suspended where execution_id = any (p_ids) returning execution_id, until
    ), gone as (
        select execution_id, until from suspensions
        union all select id, null from ended
    ), moved as (
        update execution e set status = 'requested', ready_at = clock_timestamp(), since = null, not_before = null,
            reason = case when e.ends_as is null then p_reason else e.reason end
        from gone g where e.id = g.execution_id and e.status = 'waiting'
        returning e.id, e.keys
    ), undue as (
        delete from timer t using gone g where t.execution_id = g.execution_id and t.kind = 'wake' and g.until is not null
    )
    select array_agg(id order by id), array_agg(id) filter (where keys is not null) into v_again, v_limited from moved;
    if v_limited is not null then
        select s.messages, s.started into v_messages, v_started from start_kept(v_limited) s;
        if v_started <> '{}' then
            v_again := nullif(array(select unnest(v_again) except select unnest(v_started)), '{}');
            v_limited := nullif(array(select unnest(v_limited) except select unnest(v_started)), '{}');
        end if;
    end if;
    return v_messages || settle_moves(null, v_again, held_by(v_limited));
end $$;
