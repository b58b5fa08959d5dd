-- Write how the executions of fires ended, delete these fires from `open_fire`, and return their number. All due instants are
-- between `p_first` and `p_last`, which limits the partitions that are searched.
-- planner: lookups
create or replace function write_outcomes(p_ended ended_fire[], p_first timestamptz, p_last timestamptz) returns integer
language plpgsql
as $$
declare
    v_count integer;
begin
    update fire f set outcome = d.status, ended_at = d.finished_at,
        error = case when d.status <> 'completed'
                then left(concat_ws(': ', d.error ->> 'type', d.error ->> 'message'), 500) end
    from unnest(p_ended) d
    where f.schedule = d.schedule and f.due_at = d.due_at and f.execution_id = d.execution_id
        and f.due_at between p_first and p_last;
    delete from open_fire o using unnest(p_ended) d where o.execution_id = d.execution_id;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
