-- Count the outcomes of attempts that waited for something outside, for the breakers of their keys (note_calls). The function
-- `release` has not counted such an attempt, since it freed its slots when the wait began. If a limit keeps its slot during a
-- wait, `release` counts the attempt, and this function leaves it out. The attempt counts as admitted when its wait began. A
-- completed attempt can begin the release of a breaker, so its keys are promoted. The caller holds the locks of the rows, of
-- their keys, and of the keys around these.
-- planner: lookups
create or replace function count_outside(p_ids uuid[]) returns message[]
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_calls breaker_call[] := array(
        select (e.id, k.limit_id, k.group_value, e.attempt, w.since)::breaker_call
        from execution e join outside_wait w on w.execution_id = e.id and w.attempt = e.attempt
        cross join unnest(e.keys) k
        join concurrency_limit l on l.id = k.limit_id and l.breaker is not null
        where e.id = any (p_ids) and not exists (
            select from slot s where s.execution_id = e.id and s.limit_id = k.limit_id and s.group_value = k.group_value));
begin
    if v_calls = '{}' then
        return '{}';
    end if;
    perform note_calls(v_calls);
    return raise_opened_breakers(v_calls, v_now) || promote(array(
        select distinct (c.limit_id, c.group_value)::limit_key from unnest(v_calls) c
        join execution e on e.id = c.execution_id and e.status = 'completed'));
end $$;
