-- The lines in which these wait.
-- planner: lookups
create or replace function in_line(p_wanted wanted[]) returns wanted[]
language plpgsql stable
as $$
begin
    return array(
        select (w.id, w.namespace_id, w.queue, w.envelope, w.away, w.attempt, w.rank, w.ready_at, w.keys,
            w.namespace_id || '|' || coalesce(f.fair::text, '') || '|' || array_to_string(w.keys, '|'), f.key,
            case when f.key is not null
                then f.key || group_of(f.fair, (select p.params from payload p where p.execution_id = w.id)) end)::wanted
        from unnest(p_wanted) w
        left join lateral (
            select l.fair, k as key from unnest(w.keys) k
            join concurrency_limit l on l.id = split_part(k, ':', 1)::integer and l.fair <> '{}'
            order by l.id limit 1
        ) f on true);
end $$;
