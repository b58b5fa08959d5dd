-- Record that no process has sent a heartbeat for `p_silence`: the database or the network was away for all of them. Ages
-- of heartbeats count from then on, since even healthy processes have old heartbeats. The caller calls this before a
-- process beats, joins or is examined, as each of these ends the silence.
create or replace function note_silence(p_silence interval) returns void
language plpgsql
as $$
begin
    update cluster set resumed_at = clock_timestamp()
    where (select max(beat_at) from process where state <> 'dead' and isfinite(beat_at)) < clock_timestamp() - p_silence;
end $$;
