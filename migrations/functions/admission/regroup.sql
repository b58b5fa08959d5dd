-- Puts those whose limits changed into the lines where they belong now, a lane's p_limit first at a time. They keep the
-- instant at which they became ready, and with it their place.
-- planner: lookups
create or replace function regroup(p_limit integer, out messages message[], out regrouped boolean)
language plpgsql
as $$
declare
    v_lane lane;
    v_ids uuid[];
    v_wanted wanted[];
    v_free uuid[];
begin
    messages := '{}';
    regrouped := false;
    select * into v_lane from lane where gate = 'regroup' order by rank, place, ready_at, execution_id limit 1;
    if not found then
        return;
    end if;
    v_ids := array(select w.execution_id from waiter w where w.lane = v_lane.id
                   order by w.rank, w.turn, w.ready_at, w.execution_id limit p_limit);
    v_ids := array(select x.id from (select id from execution where id = any (v_ids) and status = 'queued'
                                     order by id for no key update skip locked) x);
    perform lock_placement();
    v_wanted := in_line(array(select w from wanted_keys(v_ids) w));
    perform lock_keys(v_lane.keys || array(select distinct k from unnest(v_wanted) w, unnest(w.keys) k));
    if v_ids = '{}' and exists (select from waiter where lane = v_lane.id) then
        return; -- others have those rows, perhaps to do this very thing: the lane is not done
    end if;

    if not exists (select from unnest(v_wanted) w where w.lane is distinct from v_lane.id) then
        -- All of them wait where they should (or nobody does any more).
        update lane set gate = keys[1], moved_at = clock_timestamp() where id = v_lane.id and gate = 'regroup';
    else
        with gone as (delete from waiter where lane = v_lane.id and execution_id = any (v_ids) returning execution_id)
        select array_agg(w) filter (where w.keys is not null), array_agg(w.id) filter (where w.keys is null)
        into v_wanted, v_free
        from gone g join unnest(v_wanted) w on w.id = g.execution_id;
        if v_free is not null then
            messages := (start_executions(v_free, 'queued', true)).messages;
        end if;
        if v_wanted is not null then
            update execution e set keys = w.keys from unnest(v_wanted) w where e.id = any (v_ids) and e.id = w.id;
            perform enqueue(v_wanted);
        end if;
    end if;
    perform find_heads(array[v_lane.id]);
    messages := messages || promote(v_lane.keys || array(select distinct k from unnest(v_wanted) w, unnest(w.keys) k));
    regrouped := true;
end $$;
