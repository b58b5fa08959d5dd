-- Count ended attempts for the breakers of their keys. `p_calls` has an element for each attempt and each key with a breaker. The
-- caller has freed the slots of these attempts. It holds the locks of the keys, so no other transaction counts meanwhile.
-- An attempt counts by its outcome:
-- - A completed attempt is a success.
-- - A failed attempt or a timeout is a failure, unless the parameters of the attempt were refused.
-- - An attempt that was cancelled, lost, deferred or handed back, or that waits, is neither.
-- The attempts of one call of this function count in the order of their executions. If all successes came last, they could push
-- the failures out of the last attempts, to which the breaker looks.
-- A breaker has three states:
-- - Closed, without a row in `breaker`: it opens when the failures among the last attempts reach the threshold.
-- - Open: only probes count, which are the executions that were admitted since it opened. A failed probe puts off the next probe.
--   A probe that was deferred or cancelled, or that waits, puts it off as well, since it has called the service. A completed
--   probe begins the release.
-- - In release (`releasing_since`): only executions that were admitted since the release began count. The number of executions
--   that may be admitted (`allowed`) doubles each time that as many have completed. The breaker closes when no execution waits
--   for it any more, and opens again as a closed one does.
-- A closed breaker, or one in release, may count running attempts as failures (`counts_running`). Then a wake row makes an
-- executor look again when a failure is too old to count.
-- planner: lookups
create or replace function note_calls(p_calls breaker_call[]) returns void
language plpgsql
as $$
declare
    v_breaker breaker;
    v_counted breaker_call[];
    v_failed integer;
    v_attempts integer;
    v_passed integer;
    r record;
begin
    for r in
        select x.limit_id, x.group_value, (x.breaker ->> 'failures')::integer as failures, (x.breaker ->> 'of')::integer as size,
            make_interval(secs => (x.breaker ->> 'within')::float8) as within,
            make_interval(secs => (x.breaker ->> 'probe')::float8) as probe,
            coalesce((x.breaker ->> 'counts_running')::boolean, false) as counts_running,
            coalesce(array_agg(x.call) filter (where x.failed), '{}') as failed,
            coalesce(array_agg(x.call) filter (where not x.failed), '{}') as completed,
            coalesce(array_agg(x.call) filter (where x.failed is null and x.undecided), '{}') as undecided
        from (
            select c.limit_id, c.group_value, l.breaker,
                (c.execution_id, c.limit_id, c.group_value, e.attempt, c.admitted_at)::breaker_call as call,
                case when t.outcome in ('failed', 'timeout') and coalesce(t.error ->> 'type', '') <> 'InvalidInput' then true
                    when e.status = 'completed' and (t.outcome is null or t.outcome = 'waiting' and exists (
                        select from outside_wait w where w.execution_id = e.id and w.attempt = e.attempt)) then false end as failed,
                coalesce(t.outcome in ('deferred', 'waiting', 'cancelled'), false) as undecided
            from unnest(p_calls) c
            join concurrency_limit l on l.id = c.limit_id and l.breaker is not null
            join execution e on e.id = c.execution_id and e.attempt >= c.attempt
            left join attempt t on t.execution_id = e.id and t.attempt = e.attempt
        ) x
        group by x.limit_id, x.group_value, x.breaker
    loop
        select * into v_breaker from breaker where limit_id = r.limit_id and group_value = r.group_value;
        if v_breaker.limit_id is not null and v_breaker.releasing_since is null then
            if exists (select from unnest(r.failed) c where c.admitted_at >= v_breaker.opened_at) then
                update breaker set probe_at = clock_timestamp() + r.probe, probes = least(probes::bigint + 1, 2147483647)
                where limit_id = r.limit_id and group_value = r.group_value returning probe_at into v_breaker.probe_at;
                insert into wake (limit_id, group_value, at) values (r.limit_id, r.group_value, v_breaker.probe_at);
            elsif exists (select from unnest(r.completed) c where c.admitted_at >= v_breaker.opened_at) then
                update breaker set releasing_since = clock_timestamp(), allowed = 2
                where limit_id = r.limit_id and group_value = r.group_value;
            elsif exists (select from unnest(r.undecided) c where c.admitted_at >= v_breaker.opened_at) then
                -- The service was called, and its answer is not known. The next call waits as after a failed probe.
                update breaker set probe_at = clock_timestamp() + r.probe
                where limit_id = r.limit_id and group_value = r.group_value returning probe_at into v_breaker.probe_at;
                insert into wake (limit_id, group_value, at) values (r.limit_id, r.group_value, v_breaker.probe_at);
            end if;
            continue;
        end if;

        v_counted := array(
            select c from unnest(r.failed || r.completed) c
            where v_breaker.limit_id is null or c.admitted_at >= v_breaker.releasing_since
            order by c.execution_id);
        insert into breaker_attempt (limit_id, group_value, execution_id, attempt, failed)
        select c.limit_id, c.group_value, c.execution_id, c.attempt, c = any (r.failed) from unnest(v_counted) c;
        delete from breaker_attempt where ctid = any (array(
            select x.ctid from (
                select a.ctid, a.ended_at, row_number() over (order by a.ended_at desc, a.ctid desc) as place
                from breaker_attempt a where a.limit_id = r.limit_id and a.group_value = r.group_value) x
            where x.place > r.size or x.ended_at <= clock_timestamp() - r.within));
        select count(*), count(*) filter (where a.failed) into v_attempts, v_failed
        from breaker_attempt a where a.limit_id = r.limit_id and a.group_value = r.group_value;
        if v_failed >= r.failures then
            perform open_breaker(r.limit_id, r.group_value, clock_timestamp() + r.probe, v_failed, v_attempts, null, null);
            continue;
        end if;

        if r.counts_running and r.failed <> '{}' then
            insert into wake (limit_id, group_value, at) values (r.limit_id, r.group_value, clock_timestamp() + r.within);
        end if;
        if v_breaker.limit_id is not null then
            v_passed := v_breaker.passed + (select count(*) from unnest(v_counted) c where c <> all (r.failed));
            if not exists (select from lane l where l.gate_limit = r.limit_id and l.gate_group = r.group_value)
                and not exists (
                    select from slot s join execution e on e.id = s.execution_id and e.status = 'scheduled'
                    where s.limit_id = r.limit_id and s.group_value = r.group_value and s.admitted_at < v_breaker.opened_at)
            then
                delete from breaker where limit_id = r.limit_id and group_value = r.group_value;
            elsif v_passed >= v_breaker.allowed then
                update breaker set allowed = least(v_breaker.allowed::bigint * 2, 1073741824), passed = 0
                where limit_id = r.limit_id and group_value = r.group_value;
            else
                update breaker set passed = v_passed where limit_id = r.limit_id and group_value = r.group_value;
            end if;
        end if;
    end loop;
end $$;
