-- Raise PN001 for moves of executions that are not in `legal_move`. Write the history of all others, announce them, and record
-- them for subscriptions. A requested execution that gets another place in line has an entry in the history, too. An entry for a
-- status `requested` has the place in line. So has a move from `requested` after an instant (`not_before`), since the starts of a
-- burst put that instant off without an entry. The trigger does nothing for a statement that writes its own history. The function
-- has the owner's rights for the same reason as execution_inserted.
-- planner: moves
create or replace function execution_moved() returns trigger
language plpgsql security definer
as $$
declare
    v_illegal text;
    v_announced boolean;
    v_subscribed text[];
begin
    with moved as materialized (
        select n.id, o.status as was, n.status as becomes, n.attempt, n.reason,
            case when n.status = 'requested' or o.status = 'requested' and n.not_before is not null then n.ready_at end as ready_at
        from old_rows o join new_rows n using (id)
        where o.status <> n.status or n.status = 'requested' and o.ready_at <> n.ready_at
    ), written as (
        insert into history (execution_id, at, old, new, attempt, actor, reason, ready_at)
        select id, clock_timestamp(), was, becomes, attempt, current_setting('application_name'), reason, ready_at
        from moved
    )
    select string_agg(format('%s: %s -> %s', id, was, becomes), ', '),
        (select announced <> '{}' from cluster), (select subscribed from cluster)
    into v_illegal, v_announced, v_subscribed
    from moved m
    where m.was <> m.becomes and not exists (
        select from legal_move l where l.subject = 'execution' and l.old = m.was and l.new = m.becomes);
    if v_illegal is not null then
        raise exception 'illegal move %', v_illegal using errcode = 'PN001';
    end if;
    if v_announced then
        perform announce_moves(array_agg(n.id), array_agg(n.status))
        from old_rows o join new_rows n using (id) where o.status <> n.status;
    end if;
    if v_subscribed <> '{}' then
        insert into subscribed_move (execution_id, status, attempt, namespace_id, parent, reason)
        select n.id, n.status, n.attempt, n.namespace_id, n.parent, n.reason
        from old_rows o join new_rows n using (id) where o.status <> n.status and n.status = any (v_subscribed);
    end if;
    return null;
end $$;

create or replace trigger execution_moved after update on execution
referencing old table as old_rows new table as new_rows
for each statement when (current_setting('penstock.moves', true) is distinct from 'written'
    or not has_table_privilege('execution'::regclass, 'truncate')) execute function execution_moved();
