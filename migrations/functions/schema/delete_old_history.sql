-- Delete the rows at `p_places` from the default partition of the history, if they are older than a day. The caller has locked
-- them with old_history.
create or replace function delete_old_history(p_places text[]) returns void
language plpgsql security definer
as $$
begin
    delete from history_default h where h.ctid = any (p_places::tid[]) and h.at < now() - interval '1 day';
end $$;
