-- Records what functions of one worker have done, all that came together in one commit. The fence is the attempt and the claim
-- (I2): what is not this worker's any more is `lost`, and not written. The rows are locked, so that nobody takes an attempt away
-- while its step is recorded: the attempt after it reads all that the one before has recorded. Returns only what was not
-- written: lost, or as somebody has recorded it before (`nth` counts from 1).
-- planner: lookups_planned_once
create or replace function record_steps(
    p_worker uuid, p_executions uuid[], p_attempts integer[], p_names text[], p_ordinals integer[], p_places integer[],
    p_kinds text[], p_statuses text[], p_tries integer[], p_took real[], p_results text[], p_errors text[]
) returns table (
    nth integer, name text, ordinal integer, place integer, lost boolean, kind text, status text, tries integer, result text, error text
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_written integer;
begin
    perform lock_attempts(p_worker, p_executions);
    insert into step as s (execution_id, name, ordinal, place, kind, status, tries, attempt, took, result, error)
    select d.id, d.name, d.ordinal, d.place, d.kind, d.status, d.tries, d.attempt, d.took, d.result::json, d.error::json
    from unnest(p_executions, p_attempts, p_names, p_ordinals, p_places, p_kinds, p_statuses, p_tries, p_took, p_results,
        p_errors) as d (id, attempt, name, ordinal, place, kind, status, tries, took, result, error)
    where owns_attempt(p_worker, d.id, d.attempt)
    on conflict (execution_id, name, ordinal) do update set place = excluded.place, kind = excluded.kind,
        status = excluded.status, tries = excluded.tries, attempt = excluded.attempt, took = excluded.took,
        at = clock_timestamp(), result = excluded.result, error = excluded.error
    where s.status = 'started' or s.kind = 'state' or s.status = 'failed' and s.attempt < excluded.attempt;
    get diagnostics v_written = row_count;
    if v_written = cardinality(p_executions) then
        return;
    end if;
    return query
        select d.nth::integer, d.name, d.ordinal, d.place, not owns_attempt(p_worker, d.id, d.attempt), s.kind, s.status, s.tries, s.result::text, s.error::text
        from unnest(p_executions, p_attempts, p_names, p_ordinals, p_places, p_kinds, p_statuses, p_results)
            with ordinality as d (id, attempt, name, ordinal, place, kind, status, result, nth)
        left join lateral (select * from step s
            where s.execution_id = d.id and s.name = d.name and s.ordinal = d.ordinal offset 0) s on true
        where not owns_attempt(p_worker, d.id, d.attempt)
            or (s.kind, s.status, s.attempt) is distinct from (d.kind, d.status, d.attempt)
            or s.result::text is distinct from d.result;
end $$;
