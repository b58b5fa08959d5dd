-- requested -> scheduled for executions under limits if before each of their keys there is room for all who come now, so
-- that it does not matter who of them is first; -> queued for the others, unless a limit refuses them or makes older ones
-- give way. The caller has locked these rows as requested.
-- planner: lookups
create or replace function admit_executions(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_free uuid[];
    v_wanted wanted[];
    v_behind wanted[];
    v_keys text[];
    v_counts integer[];
    v_rooms room[];
    v_new text[];
begin
    perform lock_placement();
    select array_agg(w.id) filter (where w.keys is null), array_agg(w) filter (where w.keys is not null)
    into v_free, v_wanted from wanted_keys(p_ids) w;
    if v_free is not null then
        v_messages := (start_executions(v_free, 'requested', true)).messages;
        if v_wanted is null then
            return v_messages;
        end if;
    end if;
    select array_agg(k), array_agg(n) into v_keys, v_counts
    from (select k, count(*)::integer as n from (select unnest(w.keys) as k from unnest(v_wanted) w) x group by k) y;

    -- Of those that are sure to wait most is written down before the keys are locked, on which others wait. For a key for
    -- which one comes it is not worth the look.
    select * into v_wanted, v_behind from send_to_line(v_wanted, v_behind, array(
        select c.k from unnest(v_keys, v_counts) c (k, n)
        where n > 1 and exists (select from lane l where l.gate = c.k)));
    perform lock_keys(v_keys);
    if v_wanted is not null then
        v_rooms := rooms_left(v_keys, v_counts);
        select * into v_wanted, v_behind from send_to_line(v_wanted, v_behind, array(
            select m.key from unnest(v_rooms) m where m.free < 0
            union all
            select 'worker:' || n.id from (select distinct w.namespace_id as id, w.away from unnest(v_wanted) w) n
            where n.away or exists (select from lane l where l.gate = 'worker:' || n.id)
                or exists (select from lane l where l.gate = 'regroup' and l.namespace_id = n.id)));
    end if;
    if v_wanted is not null then
        v_messages := v_messages || (start_admitted(array(
            select (null, w.rank, 0, w.ready_at, w.id, null, w.keys, null, null, w.queue, w.envelope)::chosen
            from unnest(v_wanted) w), v_rooms, 'requested')).messages;
    end if;
    if v_behind is not null then
        v_new := enqueue(v_behind);
        if v_new is not null then
            v_messages := v_messages || promote(v_new);
        end if;
        v_messages := v_messages || turn_away(v_behind);
    end if;
    return v_messages;
end $$;
