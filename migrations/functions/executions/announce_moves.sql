-- Stage announcements of moves to the statuses in `cluster.announced`, with at most 150 executions in each, so that each fits a
-- NOTIFY.
create or replace function announce_moves(p_ids uuid[], p_statuses text[]) returns void
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
