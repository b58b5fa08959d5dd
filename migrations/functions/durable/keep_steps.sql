-- Copy the recorded steps of a durable function to its re-run `p_new`: completed steps, and sleeps that have begun. If the re-run
-- starts at the step `p_name` (null: at the beginning), copy only the steps before it. In the same branch, these are the steps
-- that the function requested earlier. In other branches, they are the steps that were recorded earlier. A signal belongs to no
-- branch. The steps before it are those that the function had received, or had asked for, when it received the signal.
-- Undos are not copied: if the re-run fails, it undoes what it has kept.
-- planner: lookups
create or replace function keep_steps(p_new uuid, p_old uuid, p_name text, p_ordinal integer) returns void
language plpgsql
as $$
begin
    insert into step (execution_id, name, ordinal, place, kind, status, tries, attempt, took, at, result, error,
        asked_after, told)
    select p_new, s.name, s.ordinal, s.place, s.kind, s.status, s.tries, 0, s.took, s.at, s.result, s.error,
        s.asked_after, s.told
    from recorded_steps(p_old) s
    left join recorded_steps(p_old) f on f.name = p_name and f.ordinal = p_ordinal
    where s.kind <> 'end' and not (s.kind = 'step' and s.name ~ '(^|/)on failure ')
        and (s.status = 'completed' or s.kind = 'sleep' and s.status = 'started')
        and (p_name is null or case
            when s.place > 0 and f.place > 0 and regexp_replace(s.name, '[^/]*$', '') = regexp_replace(f.name, '[^/]*$', '')
                then s.place < f.place
            when f.kind = 'signal' and (s.kind <> 'signal' or s.told > 0)
                -- Nothing was recorded after a signal that has no number.
                then f.told is null or coalesce(s.told, s.asked_after) < f.told
            else s.at < f.at end)
    on conflict do nothing;
end $$;
