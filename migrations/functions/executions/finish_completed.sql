-- End at most 20 attempts that completed, in their own transaction. The fast path requires that no execution has a parent, a
-- slot, a trace or a requested end, and that no status is announced or subscribed to. Otherwise finish_attempts ends them.
-- finish_attempts also ends executions that a cancel or the sweeper moves between the check and the update. `p_claims` are the
-- claims to delete: they have no other open attempt.
-- A single execution, the usual case, is ended by statements for one row, at half the cost of the statement for several. The
-- function writes the history itself, and tells the triggers so by the setting `penstock.moves`. The triggers accept it only from
-- the owner, so the function has the owner's rights.
-- planner: lookups_planned_once
create or replace function finish_completed(
    p_worker uuid, p_ids uuid[], p_attempts integer[], p_results text[], p_claims uuid[],
    out messages message[], out moved uuid[]
)
language plpgsql security definer
as $$
declare
    v_size constant integer := cardinality(p_ids);
    v_messages message[];
    v_moved uuid[];
begin
    moved := '{}';
    messages := '{}';
    -- The session may have set `penstock.moves`. The triggers would believe it, since this function has the owner's rights.
    perform set_config('penstock.moves', '', true);
    if v_size = 1 then
        perform set_config('penstock.moves', 'written', true);
        update execution e set status = 'completed', since = null, not_before = null, finished_at = clock_timestamp(),
            reason = null -- delete the reason of an earlier retry or deferral
        where e.id = p_ids[1] and e.attempt = p_attempts[1] and e.claim = p_worker and e.status = 'running'
            and e.keys is null and e.parent is null and e.ends_as is null
            and not exists (select from payload p where p.execution_id = e.id and p.origin ? 'trace')
            and exists (select from cluster u where u.id = 1 and u.announced = '{}' and u.subscribed = '{}');
        if found then
            insert into history (execution_id, at, old, new, attempt, actor)
            values (p_ids[1], clock_timestamp(), 'running', 'completed', p_attempts[1], current_setting('application_name'));
            insert into result (execution_id, result) values (p_ids[1], p_results[1]::jsonb);
            delete from live where execution_id = p_ids[1];
            -- A loop that fires a timer has locked the timer, and waits for the execution: see close_executions.
            if exists (select from timer where execution_id = p_ids[1]) then
                delete from timer where ctid = any (array(
                    select ctid from timer where execution_id = p_ids[1] for update skip locked));
            end if;
            insert into finished (ids) values (p_ids);
            if exists (select from awaited a where a.execution_id = p_ids[1]) then
                messages := tell_awaited(p_ids);
            end if;
            moved := p_ids;
        end if;
        perform set_config('penstock.moves', '', true);
    elsif v_size = (
        select count(*) from execution e
        where e.id = any (p_ids) and e.status = 'running' and e.keys is null and e.parent is null and e.ends_as is null
            and not exists (select from payload p where p.execution_id = e.id and p.origin ? 'trace')
            and exists (select from cluster u where u.id = 1 and u.announced = '{}' and u.subscribed = '{}'))
    then
        perform set_config('penstock.moves', 'written', true);
        with ended as (
            update execution e set status = 'completed', since = null, not_before = null, finished_at = clock_timestamp(),
                reason = null -- delete the reason of an earlier retry or deferral
            from unnest(p_ids, p_attempts, p_results) d (id, attempt, result)
            where e.id = d.id and e.attempt = d.attempt and e.claim = p_worker and e.status = 'running' and e.ends_as is null
            returning e.id, e.attempt, e.reason, d.result
        ), moves as (
            insert into history (execution_id, at, old, new, attempt, actor, reason)
            select id, clock_timestamp(), 'running', 'completed', attempt, current_setting('application_name'), reason from ended
        ), results as (
            insert into result (execution_id, result) select id, result::jsonb from ended
        ), closed as (
            delete from live where execution_id = any (array(select id from ended))
        ), dropped as (
            -- A loop that fires a timer has locked the timer, and waits for its execution: see close_executions.
            delete from timer where ctid = any (array(
                select ctid from timer where execution_id = any (array(select id from ended)) for update skip locked))
        ), kept as (
            insert into finished (ids) select array_agg(id) from ended having count(*) > 0
        )
        select coalesce(array_agg(id), '{}') into moved from ended;
        perform set_config('penstock.moves', '', true);
        messages := tell_awaited(moved);
    end if;
    if cardinality(moved) < v_size then
        select f.messages, f.moved into v_messages, v_moved
        from (select array_agg(d.id) as ids, array_agg(d.attempt) as attempts, array_agg(d.result) as results
              from unnest(p_ids, p_attempts, p_results) d (id, attempt, result) where d.id <> all (moved)) d,
            finish_attempts(p_worker, d.ids, d.attempts, array_fill('completed'::text, array[cardinality(d.ids)]), d.results, null,
                array_fill(0::double precision, array[cardinality(d.ids)]), null, null, '{}', p_claims) f;
        messages := messages || v_messages;
        moved := moved || v_moved;
    elsif p_claims <> '{}' then
        delete from claim where id = any (p_claims);
    end if;
end $$;
