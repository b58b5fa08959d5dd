-- Delete all rows of a watcher. The function has the owner's rights for the reason that look_for_awaited has.
create or replace function forget_awaited(p_watcher uuid) returns void
language sql security definer
as $$
    delete from awaited where watcher = p_watcher
$$;
