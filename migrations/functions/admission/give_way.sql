-- Set timers that end the oldest executions of a key, until `p_max` remain. An execution counts if it holds the key, or waits in
-- a lane that needs the key. An execution also counts if it has held the key and now waits for a retry, an instant, an answer or
-- a child. The loop of the timers ends the executions in another transaction, which takes its locks in order.
-- planner: lookups
create or replace function give_way(p_key limit_key, p_max integer) returns void
language plpgsql
as $$
begin
    insert into timer (due_at, kind, execution_id)
    select clock_timestamp(), 'yield', x.execution_id
    from (
        select o.execution_id, row_number() over (order by o.waits, o.at, o.execution_id) as n, count(*) over () as all_of
        from (
            select false as waits, s.admitted_at as at, s.execution_id from slot s
            where s.limit_id = p_key.limit_id and s.group_value = p_key.group_value
            union
            select false, e.created_at, e.id
            from (select execution_id from timer where kind = 'ready'
                  union select execution_id from suspended
                  union select execution_id from inquiry where status = 'created') a
            join execution e on e.id = a.execution_id
            where p_key = any (e.keys) and e.attempt > 0 and e.status in ('requested', 'waiting')
                and not exists (select from slot s where s.execution_id = e.id and s.limit_id = p_key.limit_id)
            union
            select true, w.ready_at, w.execution_id from lane l join waiter w on w.lane = l.id
            where l.gate_limit = p_key.limit_id and l.gate_group = p_key.group_value
            union
            -- Executions that wait at the gate of another limit. Such a limit shares a namespace with this one.
            select true, w.ready_at, w.execution_id from (
                select distinct unnest(n.limits) as id from namespace n
                where n.limits && array[p_key.limit_id] and cardinality(n.limits) > 1) s
            join lane l on l.gate_limit = s.id and cardinality(l.keys) > 1 and p_key = any (l.keys)
            join waiter w on w.lane = l.id
            union
            -- Executions in lanes that wait for a worker, or for their regrouping.
            select true, w.ready_at, w.execution_id from namespace n
            join lane l on l.namespace_id = n.id and l.gate_kind <> 'limit' and p_key = any (l.keys)
            join waiter w on w.lane = l.id
            where n.limits && array[p_key.limit_id]
        ) o
        join execution e on e.id = o.execution_id
        where e.status <> 'canceling'
            and not exists (select from workflow w where w.execution_id = o.execution_id and w.stop_status is not null)
            and not exists (select from timer t where t.execution_id = o.execution_id and t.kind = 'yield')
    ) x
    where x.n <= x.all_of - p_max;
end $$;
