-- Turn at most `p_moves` recorded moves, oldest first, into calls to the subscriptions that match them. Return the number of
-- moves. A subscription that has `p_waiting` unanswered calls gets no further call. The column `dropped` counts the moves that
-- such a subscription misses. An execution may be archived before its calls are made, so its labels are read in both tables. It has
-- finished at the instant of the move or later, give or take the time between two readings of the clock.
-- planner: lookups
create or replace function make_deliveries(p_moves integer, p_waiting integer) returns integer
language plpgsql
as $$
declare
    v_moves integer;
begin
    with taken as (
        delete from subscribed_move where id in (
            select id from subscribed_move order by id limit p_moves for update skip locked)
        returning *
    ), wanted as (
        select m.*, s.name, n.action, n.name as namespace,
            (select count(*) from (select from delivery d where d.subscription = s.name limit p_waiting) w) >= p_waiting as is_full
        from taken m join namespace n on n.id = m.namespace_id
        join subscription s on s.disabled_at is null and m.status = any (s.statuses)
            and (s.tasks or m.parent is null)
            and (s.tenant is null or s.tenant = split_part(n.name, '::', 1))
            and (s.action is null or n.action like replace(replace(s.action, '_', '\_'), '*', '%'))
            and (s.workflow is null or s.workflow = split_part(n.name, '::', 2) || '.' || split_part(n.name, '::', 3))
            and (s.labels = '{}' or s.labels <@ (
                select jsonb_object_agg(x.key, x.value) from (
                    select l.key, l.value from label l where l.execution_id = m.execution_id
                    union all
                    select a.key, a.value from archived_label a
                    where a.id = m.execution_id and a.finished_at >= m.at - interval '1 minute') x))
    ), made as (
        insert into delivery (id, subscription, body)
        select gen_random_uuid(), name, json_build_object(
            'type', 'execution.' || status,
            'timestamp', to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
            'data', json_build_object('id', execution_id, 'status', status, 'action', action, 'namespace', namespace,
                'attempt', attempt, 'parent', parent,
                -- A reason may contain the text of an error, and an encrypted value may not leave the installation.
                'reason', case when not starts_with(reason, '$sealed:') then reason end))::text
        from wanted where not is_full order by id
    ), counted as (
        update subscription s set dropped = s.dropped + lost.count
        from (select name, count(*) as count from wanted where is_full group by name) lost where s.name = lost.name
    )
    select count(*) into v_moves from taken;
    return v_moves;
end $$;
