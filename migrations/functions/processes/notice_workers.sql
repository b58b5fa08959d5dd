-- Record for every namespace since when no active worker runs it (is_away). Lanes of such a namespace stand aside and let other
-- lanes pass. When a worker comes, a wake row makes an executor restore them. The function is called when workers come and go,
-- and from time to time.
create or replace function notice_workers() returns void
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(7, -2);
    with changed as (
        update namespace set away_since = case when away_since is null then clock_timestamp() end
        where is_away(limits, kind, queue, action) = (away_since is null)
        returning id, away_since
    )
    insert into wake (namespace_id) select id from changed where away_since is null;
end $$;
