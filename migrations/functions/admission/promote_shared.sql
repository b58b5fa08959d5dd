-- What promote does, for keys before which executions stand that need other keys too: the best of all lanes first, one by
-- one. A lane of which another key is full goes and stands before that one. Where somebody else has the first in line in
-- hand, or a key of his that was found too late to be locked in order, nobody passes at that gate: a wake row sees to them.
create or replace function promote_shared(p_keys text[], p_held text[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[];
    r record;
    v_lane lane;
    v_head waiter;
    v_next waiter;
    v_rooms room[] := array(
        select m from key_room(array(select k from unnest(p_keys) k where k not like 'worker:%')) m);
    v_many boolean := false;
    v_keys text[];
    v_open text[];
    v_done text[] := '{}';
    v_gate text;
    v_new text[];
    v_of integer[];
    v_space namespace;
    v_stuck text[] := '{}';
    v_chosen chosen[] := '{}';
begin
    v_keys := array(select m.key from unnest(v_rooms) m);
    v_open := array(select m.key from unnest(v_rooms) m where m.free > 0)
        || array(select k from unnest(p_keys) k where k like 'worker:%');
    loop
        v_many := cardinality(v_chosen) = 500;
        exit when v_many;
        select l.* into v_lane from unnest(v_open) k cross join lateral (
            select * from lane l where l.gate = k and l.id <> all (v_done)
            order by l.rank, l.place, l.ready_at, l.execution_id limit 1) l
        order by l.rank, l.place, l.ready_at, l.execution_id limit 1;
        exit when not found;

        v_new := array(select k from unnest(v_lane.keys) k except select unnest(v_keys));
        if exists (select from unnest(v_new) k
                   where k <> all (p_held) and not pg_try_advisory_xact_lock(7, hashtext(k) & 2047)) then
            insert into wake (key) values (v_lane.gate);
            v_open := array_remove(v_open, v_lane.gate); -- nobody overtakes him there
            continue;
        end if;
        v_rooms := v_rooms || array(select m from key_room(v_new) m);
        v_keys := array(select m.key from unnest(v_rooms) m);
        v_of := array(select array_position(v_keys, k) from unnest(v_lane.keys) with ordinality as x (k, n) order by n);

        -- Where a gate stays closed, those before it come first there, whatever room there is.
        select (v_rooms[i]).key into v_gate from unnest(v_of) i
        where (v_rooms[i]).free <= 0 or (v_rooms[i]).key <> all (v_open) and exists (
            select from lane l where l.gate = (v_rooms[i]).key and (l.rank, l.place, l.ready_at, l.execution_id) < (v_lane.rank,
                case when v_lane.fair = l.gate then v_lane.turn else 0 end, v_lane.ready_at, v_lane.execution_id))
        limit 1;
        if not found then
            select * into v_space from namespace where id = v_lane.namespace_id;
            v_gate := case when v_space.away_since is not null then 'worker:' || v_space.id end;
        end if;
        if v_gate is not null then
            update lane set gate = v_gate, moved_at = clock_timestamp() where id = v_lane.id and gate <> v_gate;
            if found and v_gate like 'worker:%' then
                insert into wake (key) values (v_gate); -- one may just have come, and seen nobody
            end if;
            v_done := v_done || v_lane.id;
            continue;
        end if;

        v_head := null;
        v_next := null;
        for r in
            select w as waiter from waiter w
            where w.lane = v_lane.id and (w.rank, w.turn, w.ready_at, w.execution_id)
                >= (v_lane.rank, v_lane.turn, v_lane.ready_at, v_lane.execution_id)
            order by w.rank, w.turn, w.ready_at, w.execution_id limit 2
        loop
            if v_head.lane is null then v_head := r.waiter; else v_next := r.waiter; end if;
        end loop;
        if not exists (select from execution e where e.id = v_head.execution_id and e.status = 'queued'
                       for no key update skip locked) then
            insert into wake (key, at) values (v_lane.gate, clock_timestamp() + interval '100 milliseconds');
            v_stuck := v_stuck || v_lane.gate;
            v_open := array_remove(v_open, v_lane.gate); -- nobody overtakes him, or those behind him
            continue;
        end if;
        for i in 1 .. cardinality(v_of) loop
            v_rooms[v_of[i]].free := (v_rooms[v_of[i]]).free - 1;
            if (v_rooms[v_of[i]]).free <= 0 then
                v_open := array_remove(v_open, (v_rooms[v_of[i]]).key);
            end if;
        end loop;
        v_chosen := v_chosen || (v_lane.id, v_head.rank, v_head.turn, v_head.ready_at, v_head.execution_id,
            greatest(v_head.since, v_lane.moved_at), v_lane.keys, v_lane.fair, v_lane.gate, v_space.queue,
            v_space.envelope)::chosen;
        if v_next.lane is null then
            delete from lane where id = v_lane.id;
        else
            update lane set rank = v_next.rank, turn = v_next.turn, ready_at = v_next.ready_at,
                execution_id = v_next.execution_id, admitted = admitted + 1
            where id = v_lane.id;
        end if;
    end loop;
    v_messages := (start_admitted(v_chosen, v_rooms, 'queued')).messages;
    -- Before these some are left who have room still, or wait for the next instant of their rate.
    insert into wake (key)
    select m.key from key_room(array(
        select m.key from unnest(v_rooms) m
        where (m.rated or v_many) and m.key <> all (v_stuck) and exists (select from lane l where l.gate = m.key))) m
    where m.free > 0
    union all
    select k from unnest(v_open) k where v_many and k like 'worker:%';
    return v_messages;
end $$;
