-- Delete all rows of a watcher. The function has the owner's rights for the same reason as look_for_awaited.
create or replace function forget_awaited(p_watcher uuid) returns void
language sql security definer
as $$
    delete from awaited where watcher = p_watcher
$$;
