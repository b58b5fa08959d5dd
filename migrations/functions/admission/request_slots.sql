-- Admit the requested and due executions among `p_ids`: requested -> scheduled if each key that the execution needs has room. An
-- execution without room is queued, unless a limit refuses it. An execution that needs no key starts. If there is room for all of
-- them, and no execution waits, all start in any order.
-- The function takes all locks in their order: rows of executions, the placement, keys. The function reads the rows after it has
-- locked them, since their limits or their instants may have changed after the caller looked. The function reads the room after
-- it has locked the keys.
-- planner: lookups
create or replace function request_slots(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_ids uuid[] := array(
        select id from execution
        where id = any (p_ids) and status = 'requested' and (not_before is null or not_before <= clock_timestamp())
        order by id for no key update);
    v_free candidate[];
    v_asking candidate[];
    v_waiting candidate[];
    v_keys limit_key[];
    v_counts integer[];
    v_rooms room[];
    v_new limit_key[];
    v_messages message[] := '{}';
    r record;
begin
    if v_ids = '{}' then
        return v_messages;
    end if;
    perform lock_placement();
    select array_agg(c) filter (where c.keys is null), array_agg(c) filter (where c.keys is not null)
    into v_free, v_asking from find_candidates(v_ids) c;
    if v_free is not null then
        v_messages := admit(v_free, '{}');
    end if;
    if v_asking is null then
        return v_messages;
    end if;
    v_asking := set_costs(v_asking);
    if exists (select from unnest(v_asking) c where c.costs is not null) then
        for r in select t.reason, array_agg(t.id order by t.id) as ids from too_costly(v_asking) t group by t.reason order by 1 loop
            v_messages := v_messages || (end_executions(r.ids, array['requested'], 'cancelled', r.reason, null)).messages;
            v_asking := array(select c from unnest(v_asking) c where c.id <> all (r.ids));
        end loop;
        if v_asking = '{}' then
            return v_messages;
        end if;
    end if;

    select keys, counts into v_keys, v_counts from count_keys(v_asking);
    perform lock_keys(v_keys);
    select * into v_asking, v_waiting, v_rooms from find_room(v_asking, v_keys, v_counts);
    if v_asking is not null then
        v_messages := v_messages || admit(v_asking, v_rooms);
    end if;
    if v_waiting is not null then
        v_waiting := find_lanes(v_waiting);
        v_new := join_line(v_waiting);
        if v_new is not null then
            -- Only the new lanes are promoted. Each older lane was tried before, and its gate is closed.
            v_messages := v_messages || promote(v_new);
            -- An executor that knows of no waiting lane looks again only after 10 s. That would be too late for the next start of
            -- a rate, or for a probe.
            v_messages := v_messages || timers_set((
                select min(w.at) from unnest(v_new) k
                join concurrency_limit l on l.id = k.limit_id and (l.rate_count is not null or l.breaker is not null)
                join wake w on w.limit_id = k.limit_id and w.group_value = k.group_value));
        end if;
        v_messages := v_messages || refuse(v_waiting);
    end if;
    return v_messages;
end $$;
