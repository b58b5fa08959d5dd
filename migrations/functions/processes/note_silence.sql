-- Record that no process has sent a heartbeat for `p_silence`. Then the database or the network was away for all processes, and
-- even healthy ones have old heartbeats. So the ages of heartbeats count from now on. The caller calls this before a process
-- sends a heartbeat, joins or is examined, since each of these ends the silence. If the clock of the database went back, instants
-- that are to come count as now. Otherwise no process would be found silent or ended until the clock has passed them.
create or replace function note_silence(p_silence interval) returns void
language plpgsql
as $$
begin
    -- Several processes may do this at once. A row that another one has locked is left to it.
    update process set beat_at = least(beat_at, clock_timestamp()), unlocked_at = least(unlocked_at, clock_timestamp())
    where id in (
        select id from process
        where state <> 'dead' and isfinite(beat_at)
            and greatest(beat_at, unlocked_at) > clock_timestamp() + interval '1 second'
        order by id for no key update skip locked);
    update cluster set resumed_at = clock_timestamp()
    where resumed_at > clock_timestamp() + interval '1 second' or (
        select max(beat_at) from process where state <> 'dead' and isfinite(beat_at)) < clock_timestamp() - p_silence;
end $$;
