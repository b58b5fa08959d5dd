-- Record that no process has sent a heartbeat for `p_silence`. Then the database or the network was away for all processes, and
-- even healthy ones have old heartbeats. So the ages of heartbeats count from now on. The caller calls this before a process
-- sends a heartbeat, joins or is examined, since each of these ends the silence.
create or replace function note_silence(p_silence interval) returns void
language plpgsql
as $$
begin
    update cluster set resumed_at = clock_timestamp()
    where (select max(beat_at) from process where state <> 'dead' and isfinite(beat_at)) < clock_timestamp() - p_silence;
end $$;
