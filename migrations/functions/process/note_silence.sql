-- Notes that no process at all has beaten for p_silence: the database or the network was away, from everybody. What is told
-- from the age of a heartbeat counts from then on, since healthy processes look lost too. Asked before anybody beats, comes or
-- is looked at, as each of these ends the silence.
create or replace function note_silence(p_silence interval) returns void
language plpgsql
as $$
begin
    update cluster set resumed_at = clock_timestamp()
    where (select max(beat_at) from process where state <> 'dead' and isfinite(beat_at)) < clock_timestamp() - p_silence;
end $$;
