-- Raise a system event of `p_trigger` for each of these executions, if a rule or a waiting task asks for it. `p_details` has
-- further fields of the payload for each execution. `p_details` is null if there are none.
create or replace function raise_execution_events(p_trigger text, p_ids uuid[], p_details jsonb[] default null) returns message[]
language plpgsql
as $$
begin
    if not is_asked(p_trigger) then
        return '{}';
    end if;
    return (
        select raise_events(p_trigger, array_agg(x.tenant order by x.id), array_agg(x.payload || coalesce(d.details, '{}') order by x.id),
            array_agg(x.id order by x.id))
        from describe_executions(p_ids) x left join unnest(p_ids, p_details) d (id, details) on d.id = x.id);
end $$;
