-- Mends of what `penstock check` finds, for `penstock repair`. Each takes ids that were found, looks at them again under
-- the locks that make it true (rows, in order, then keys), and leaves alone what is right by now. So it may run on a live
-- system, and twice.

-- I2. Who runs for nobody is lost; who does not run belongs to nobody.
create function mend_owners(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    v_nobody constant uuid := '00000000-0000-0000-0000-000000000000';
    v_lost uuid[];
begin
    perform from execution where id = any (p_ids) and finished_at is null order by id for no key update;
    update execution set claim = null
    where id = any (p_ids) and claim is not null and status not in ('running', 'canceling') and finished_at is null;
    with lost as (
        update execution e set claim = v_nobody from namespace n
        where e.id = any (p_ids) and e.claim is null and e.status in ('running', 'canceling')
            and n.id = e.namespace_id and n.queue like 'work.%'
        returning e.id
    )
    select array_agg(id) into v_lost from lost;
    return query select * from recover_executions(v_nobody, v_lost, 'it ran for nobody (penstock repair)');
end $$;

-- I3s. Slots of executions that need none are freed, and the next in line let in.
create function mend_slots(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    v_held held[];
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    select array_agg((s.execution_id, s.key)::held) into v_held
    from slot s left join execution e on e.id = s.execution_id
    where s.execution_id = any (p_ids)
        and (e.id is null or e.status not in ('scheduled', 'running', 'canceling', 'waiting') or s.key <> all (e.keys));
    if v_held is not null then
        return query select * from free_slots(v_held);
    end if;
end $$;

-- I5. Gates that are open are looked at again.
create function mend_gates(p_lanes text[]) returns setof staged
language plpgsql
as $$
begin
    insert into wake (key)
    select distinct l.gate from lane l
    where l.id = any (p_lanes) and l.gate <> 'regroup' and not exists (select from wake w where w.key = l.gate);
end $$;

-- I5w. Who stands in line without being queued leaves it; who is queued and stands nowhere is requested anew, and finds
-- his old place by the instant at which he became ready; and every lane knows again who is first. p_ids are executions
-- and lanes.
create function mend_lines(p_ids text[]) returns setof staged
language plpgsql
as $$
declare
    v_ids uuid[] := array(select x::uuid from unnest(p_ids) x where x ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$');
    v_lanes text[];
    v_keys text[];
    v_again uuid[];
begin
    perform from execution where id = any (v_ids) order by id for no key update;
    v_lanes := array(select id from lane where id = any (p_ids)
                     union select lane from waiter where execution_id = any (v_ids));
    v_keys := array(select k from lane l cross join unnest(l.keys) k where l.id = any (v_lanes)
                    union select k from execution e cross join unnest(e.keys) k where e.id = any (v_ids));
    perform lock_keys(v_keys);
    delete from waiter w where w.execution_id = any (v_ids)
        and (not exists (select from execution e where e.id = w.execution_id and e.status = 'queued')
             or not exists (select from lane l where l.id = w.lane));
    with moved as (
        update execution e set status = 'requested', reason = 'it stood in no line (penstock repair)'
        where e.id = any (v_ids) and e.status = 'queued'
            and not exists (select from waiter w where w.execution_id = e.id)
        returning id
    )
    select array_agg(id) into v_again from moved;
    if v_again is not null then
        insert into live (execution_id) select unnest(v_again) on conflict do nothing;
        return query select * from stage('execution.requested', v_again, 50);
    end if;
    perform find_heads(v_lanes);
    return query select * from promote(v_keys);
end $$;

-- I7. Enforcements whose execution there never was are executed. One that was and is gone is not: that would be twice.
create function mend_enforcements(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    update enforcement n set status = 'created'
    where n.execution_id = any (p_ids) and n.status = 'executed'
        and not exists (select from execution e where e.id = n.execution_id)
        and not exists (select from archive a where a.id = n.execution_id)
        and not exists (select from history h where h.execution_id = n.execution_id
                        and h.at >= n.created_at - interval '1 minute');
    return query select * from execute_enforcements(p_ids);
end $$;

-- I10a. What is open is where recovery looks.
create function mend_forgotten(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    insert into live (execution_id)
    select e.id from execution e
    where e.id = any (p_ids) and e.finished_at is null and e.status <> 'queued'
        and not exists (select from waiter w where w.execution_id = e.id)
    on conflict do nothing;
    return query select * from mend_lines(array(
        select e.id::text from execution e where e.id = any (p_ids) and e.status = 'queued'));
end $$;

-- I10b. What is not open, or stands in line, is not there.
create function mend_live(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    delete from live l where l.execution_id = any (p_ids)
        and not exists (select from execution e
                        where e.id = l.execution_id and e.finished_at is null and e.status <> 'queued');
end $$;

-- I10c. What ended gets an outcome that says that its own was lost, so that nobody waits for it for ever.
create function mend_outcomes(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    insert into result (execution_id, error)
    select e.id, jsonb_build_object('type', 'ResultLost', 'message', 'its outcome was lost (penstock repair)')
    from execution e where e.id = any (p_ids) and e.finished_at is not null
    on conflict do nothing;
end $$;

-- I10d. Attempts of workers that are gone are taken back, and those that a worker which lives does not say it holds.
create function mend_orphans(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    r record;
begin
    perform from execution where id = any (p_ids) order by id for no key update;
    for r in
        select e.claim as worker, array_agg(e.id order by e.id) as ids
        from execution e
        where e.id = any (p_ids) and e.status in ('running', 'canceling')
            and not exists (select from claim c where c.worker = e.claim and e.id = any (c.executions)
                            and exists (select from process p where p.id = c.worker))
            and not exists (select from process p
                            where p.id = e.claim and p.state <> 'dead' and e.id = any (p.holding))
        group by e.claim
    loop
        return query select * from recover_executions(r.worker, r.ids, 'its worker is gone (penstock repair)');
    end loop;
end $$;

-- I10e. Who waits for an answer to a question that is not there runs again, and asks again.
create function mend_silent(p_ids uuid[]) returns setof staged
language plpgsql
as $$
declare
    v_ids uuid[];
begin
    with moved as (
        update execution e set status = 'requested', ready_at = clock_timestamp(),
            reason = 'its inquiry was lost (penstock repair)'
        from namespace n
        where e.id = any (p_ids) and e.status = 'waiting' and n.id = e.namespace_id and n.queue like 'work.%'
            and not exists (select from inquiry i where i.execution_id = e.id and i.status = 'created')
        returning e.id
    )
    select array_agg(id order by id) into v_ids from moved;
    if v_ids is not null then
        delete from inquiry where execution_id = any (v_ids);
        insert into live (execution_id) select unnest(v_ids) on conflict do nothing;
        return query select * from stage('execution.requested', v_ids, 50);
        return query select * from leave_limits(v_ids);
    end if;
end $$;

-- I10f. What ended is on its way to the archive.
create function mend_finished(p_ids uuid[]) returns setof staged
language plpgsql
as $$
begin
    insert into finished (ids)
    select array_agg(e.id) from execution e
    where e.id = any (p_ids) and e.parent is null and e.finished_at is not null
        and not exists (select from finished f where e.id = any (f.ids))
    having count(*) > 0;
end $$;
