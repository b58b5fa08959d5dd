-- What a worker was offered and does not take goes back on its route, so that another worker can have it: at once where
-- this one had no slot for it (all after the first p_take); later where it lacks the action, since it never fails work for
-- that, or where the message came to the wrong route.
create or replace function hand_back(p_ids uuid[], p_take integer, p_queue text, p_lacking integer[]) returns message[]
language plpgsql
as $$
declare
    v_messages message[] := '{}';
    v_queue text;
    v_size integer;
    v_ids uuid[];
begin
    for v_queue, v_size, v_ids in
        select n.queue, n.envelope, array_agg(e.id order by e.id)
        from execution e join namespace n on n.id = e.namespace_id
        where e.id = any (p_ids[p_take + 1:]) and e.status = 'scheduled'
            and e.definition_id <> all (p_lacking)
        group by n.queue, n.envelope
    loop
        v_messages := v_messages || stage(v_queue, v_ids, v_size);
    end loop;

    insert into outbox (queue, ids, due_at, error)
    select n.queue, array_agg(e.id order by e.id), clock_timestamp() + interval '5 seconds',
        'no live worker of this route has the action'
    from execution e join namespace n on n.id = e.namespace_id
    where e.id = any (p_ids) and e.status = 'scheduled'
        and (e.definition_id = any (p_lacking) or (n.queue <> p_queue and e.id = any (p_ids[1:p_take])))
    group by n.queue, e.definition_id;
    return v_messages;
end $$;
