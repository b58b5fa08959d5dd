-- Record steps of the durable functions of one worker, all in one commit. The fence is the attempt and the claim (I2). The rows
-- of the executions are locked, so no transaction takes an attempt away while its step is recorded. The next attempt therefore
-- reads all steps that this attempt has recorded. There are three kinds of writes:
-- - A step with its result.
-- - `told` as the status: it only records that the function received the result of the step.
-- - A step together with another step that must not exist (`p_unless_names`, `p_unless_ordinals`). The lock makes that check safe
--   against a signal that is sent at the same time. A result that an operator has given under the name of a signal counts as that
--   signal.
-- Return only the writes that changed nothing. `nth` is the number of the write, from 1. The worker no longer owns the attempt
-- (`lost`), or the step is recorded already, or the other step exists. The remaining columns are the step that exists instead.
-- planner: lookups_planned_once
create or replace function record_steps(
    p_worker uuid, p_executions uuid[], p_attempts integer[], p_names text[], p_ordinals integer[], p_places integer[],
    p_kinds text[], p_statuses text[], p_tries integer[], p_took real[], p_results text[], p_errors text[],
    p_asked_after integer[], p_told integer[], p_unless_names text[], p_unless_ordinals integer[]
) returns table (
    nth integer, name text, ordinal integer, place integer, lost boolean, kind text, status text, tries integer, result text,
    error text, at timestamptz
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_written integer;
    v_told integer := 0;
begin
    perform lock_attempts(p_worker, p_executions);
    if exists (select from unnest(p_unless_names) u where u is not null) then
        insert into step (execution_id, name, ordinal, place, kind, status, attempt, result, at)
        select d.id, d.unless, d.unless_ordinal, 0, 'signal', 'completed', 0, t.result, t.at
        from unnest(p_executions, p_attempts, p_unless_names, p_unless_ordinals) as d (id, attempt, unless, unless_ordinal)
        join step t on t.execution_id = d.id and 'signal/' || t.name = d.unless and t.ordinal = d.unless_ordinal
        where owns_attempt(p_worker, d.id, d.attempt) and t.kind = 'given' and t.told is null
        on conflict do nothing;
    end if;
    insert into step as s (execution_id, name, ordinal, place, kind, status, tries, attempt, took, result, error, asked_after, told)
    select d.id, d.name, d.ordinal, d.place, d.kind, d.status, d.tries, d.attempt, d.took, d.result::json, d.error::json,
        d.asked_after, d.told
    from unnest(p_executions, p_attempts, p_names, p_ordinals, p_places, p_kinds, p_statuses, p_tries, p_took, p_results,
        p_errors, p_asked_after, p_told, p_unless_names, p_unless_ordinals)
        as d (id, attempt, name, ordinal, place, kind, status, tries, took, result, error, asked_after, told, unless, unless_ordinal)
    where d.status <> 'told' and owns_attempt(p_worker, d.id, d.attempt)
        and (d.unless is null or not exists (select from step u
            where u.execution_id = d.id and u.name = d.unless and u.ordinal = d.unless_ordinal))
    on conflict (execution_id, name, ordinal) do update set place = excluded.place, kind = excluded.kind,
        status = excluded.status, tries = excluded.tries, attempt = excluded.attempt, took = excluded.took,
        at = case when excluded.status = 'superseded' or excluded.status = s.status and excluded.told is not null then s.at
            else clock_timestamp() end,
        result = excluded.result, error = excluded.error, asked_after = excluded.asked_after, told = excluded.told
    where s.status = 'started' or s.kind = 'state' or excluded.status = 'superseded'
        or s.status in ('failed', 'cancelled') and s.attempt < excluded.attempt;
    get diagnostics v_written = row_count;
    if 'told' = any (p_statuses) then
        update step s set told = coalesce(s.told, d.told)
        from unnest(p_executions, p_attempts, p_names, p_ordinals, p_statuses, p_told)
            as d (id, attempt, name, ordinal, status, told)
        where d.status = 'told' and owns_attempt(p_worker, d.id, d.attempt)
            and s.execution_id = d.id and s.name = d.name and s.ordinal = d.ordinal;
        get diagnostics v_told = row_count;
    end if;
    if v_written + v_told = cardinality(p_executions) then
        return;
    end if;
    return query
        select d.nth::integer, s.name, s.ordinal, coalesce(s.place, d.place), not owns_attempt(p_worker, d.id, d.attempt), s.kind,
            s.status, s.tries, s.result::text, s.error::text, s.at
        from unnest(p_executions, p_attempts, p_names, p_ordinals, p_places, p_kinds, p_statuses, p_results, p_unless_names,
            p_unless_ordinals)
            with ordinality as d (id, attempt, name, ordinal, place, kind, status, result, unless, unless_ordinal, nth)
        left join lateral (select * from step u
            where u.execution_id = d.id and u.name = d.unless and u.ordinal = d.unless_ordinal offset 0) u on true
        left join lateral (select * from step t
            where t.execution_id = d.id and t.name = d.name and t.ordinal = d.ordinal and u.name is null
            union all select u.* where u.name is not null offset 0) s on true
        where not owns_attempt(p_worker, d.id, d.attempt) or u.name is not null
            or d.status <> 'told' and ((s.kind, s.status, s.attempt) is distinct from (d.kind, d.status, d.attempt)
                or s.result::text is distinct from d.result);
end $$;
