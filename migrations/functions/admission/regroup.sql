-- Move executions under changed limits to the lanes in which they belong now: the first `p_limit` executions of all marked lanes.
-- The executions keep their places, since they keep the instant at which they became ready. An execution that needs no key any
-- more starts. No execution with keys starts here. It starts when all lanes under its limits are regrouped, so each key gets a
-- wake row. `regrouped` is false if no lane is left to regroup, or if other transactions hold all rows that this call looked at.
-- planner: lookups
create or replace function regroup(p_limit integer, out messages message[], out regrouped boolean)
language plpgsql
as $$
declare
    v_lanes uuid[] := array(select id from lane where gate_kind = 'regroup' order by rank, ready_at, execution_id limit p_limit);
    v_ids uuid[];
    v_belong candidate[];
    v_free candidate[];
    v_keys limit_key[];
begin
    messages := '{}';
    regrouped := false;
    if v_lanes = '{}' then
        return;
    end if;
    -- The order is that of all lanes together, so that the turns of a group follow its places. Of later lanes fewer waiters are
    -- read. Behind the last waiter that was read of a lane, further ones may follow, so later places have to wait for a next call.
    v_ids := array(
        with first_waiters as (
            select w.rank, w.ready_at, w.execution_id, l.most,
                row_number() over (partition by l.id order by w.rank, w.ready_at, w.execution_id) as n
            from (
                select *, ceil(p_limit::numeric / row_number() over (order by rank, ready_at, execution_id)) as most
                from lane where id = any (v_lanes)) l
            cross join lateral (
                select * from waiter w
                where w.lane = l.id and (w.rank, w.turn, w.ready_at, w.execution_id) >= (l.rank, l.turn, l.ready_at, l.execution_id)
                order by w.rank, w.turn, w.ready_at, w.execution_id limit l.most) w
        )
        select f.execution_id from first_waiters f
        where ((f.rank, f.ready_at, f.execution_id) > (
            select b.rank, b.ready_at, b.execution_id from first_waiters b where b.n = b.most
            order by b.rank, b.ready_at, b.execution_id limit 1)) is not true
        order by f.rank, f.ready_at, f.execution_id limit p_limit);
    v_ids := array(select x.id from (select id from execution where id = any (v_ids) and status = 'queued'
                                     order by id for no key update skip locked) x);
    perform lock_placement();
    v_belong := find_lanes(set_costs(array(select c from find_candidates(v_ids) c)));
    if v_ids <> '{}' then
        v_lanes := array(select distinct lane from waiter where execution_id = any (v_ids));
    end if;
    v_keys := array(
        select k from lane l cross join unnest(l.keys) k where l.id = any (v_lanes)
        union select k from unnest(v_belong) c cross join unnest(c.keys) k);
    perform lock_keys(v_keys);
    if v_ids = '{}' then
        -- Other transactions hold the rows, perhaps to regroup them, so the lanes stay marked. Or the lanes are empty.
        v_lanes := array(select id from lane l where l.id = any (v_lanes) and not exists (select from waiter where lane = l.id));
        if v_lanes = '{}' then
            return;
        end if;
    end if;

    select array_agg(c) filter (where c.keys is not null), array_agg(c) filter (where c.keys is null)
    into v_belong, v_free
    from unnest(v_belong) c join waiter w on w.execution_id = c.id
    where c.lane <> w.lane or c.keys is null;
    -- All executions of a lane need the same keys. So a lane is right if none of these executions has to leave it.
    perform restore_gates(array(
        select id from unnest(v_lanes) id except
        select w.lane from unnest(v_belong || v_free) c join waiter w on w.execution_id = c.id), 'regroup');
    if v_free is not null then
        perform leave_line(array(select c.id from unnest(v_free) c), true);
        messages := admit(v_free, '{}');
    end if;
    if v_belong is not null then
        perform leave_line(array(select c.id from unnest(v_belong) c), false);
        perform join_line(v_belong);
    end if;
    insert into wake (limit_id, group_value)
    select k.limit_id, k.group_value from (select distinct limit_id, group_value from unnest(v_keys)) k
    where exists (select from lane l where l.gate_limit = k.limit_id and l.gate_group = k.group_value)
        and not exists (
            select from wake w
            where w.limit_id = k.limit_id and w.group_value = k.group_value and w.at <= clock_timestamp());
    regrouped := true;
end $$;
