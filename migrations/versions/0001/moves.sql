-- Refuses moves that are not declared, and writes the history: one join of the transition tables for both. Stages what
-- is to be announced, in envelopes that fit a NOTIFY.
-- Hash joins only: a nested loop that was planned for a small batch is ruinous for a large one, and callers set
-- planner options of their own, which would hold in here too.
create function announce_moves(p_ids uuid[], p_statuses text[]) returns void
language sql
as $$
    insert into outbox (queue, ids)
    select 'execution.status.' || status, array_agg(id order by id)
    from (
        select id, status, row_number() over (partition by status order by id) / 150 as envelope
        from unnest(p_ids, p_statuses) as m (id, status)
        where status = any (array(select unnest(announced) from cluster))
    ) m
    group by status, envelope
$$;

create function execution_moved() returns trigger
language plpgsql
set enable_nestloop = off set enable_hashjoin = on set enable_seqscan = on
as $$
declare
    v_illegal text;
    v_announced boolean;
begin
    with moved as materialized (
        select n.id, o.status as was, n.status as becomes, n.attempt, n.reason
        from old_rows o join new_rows n using (id)
        where o.status <> n.status
    ), written as (
        insert into history (execution_id, at, old, new, attempt, actor, reason)
        select id, clock_timestamp(), was, becomes, attempt, current_setting('application_name'), reason from moved
    )
    select string_agg(format('%s: %s -> %s', id, was, becomes), ', '), (select announced <> '{}' from cluster)
    into v_illegal, v_announced
    from moved m
    where not exists (select from legal_move l where l.old = m.was and l.new = m.becomes);
    if v_illegal is not null then
        raise exception 'illegal move %', v_illegal using errcode = 'PN001';
    end if;
    if v_announced then
        perform announce_moves(array_agg(n.id), array_agg(n.status))
        from old_rows o join new_rows n using (id) where o.status <> n.status;
    end if;
    return null;
end $$;

create trigger execution_moved after update on execution
referencing old table as old_rows new table as new_rows
for each statement execute function execution_moved();

create function execution_inserted() returns trigger
language plpgsql
as $$
begin
    insert into history (execution_id, at, old, new, attempt, actor, reason)
    select id, clock_timestamp(), null, status, attempt, current_setting('application_name'), reason from new_rows;
    if exists (select from cluster where announced <> '{}') then
        perform announce_moves(array_agg(id), array_agg(status)) from new_rows;
    end if;
    return null;
end $$;

create trigger execution_inserted after insert on execution
referencing new table as new_rows
for each statement execute function execution_inserted();
