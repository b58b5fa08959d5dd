-- What an execution becomes whose worker is gone: what it was asked to end as, if it was; else by what its action, or its task
-- in a workflow, says of recovery: it runs again, or ends as `abandoned` when it was lost too often, or as `failed` where it
-- must not run twice.
create or replace function after_loss(p_ends_as text, p_recoveries integer, p_recovery jsonb) returns text
language sql immutable
as $$
    select case
        when p_ends_as is not null then p_ends_as
        when p_recovery ->> 'on_worker_loss' = 'fail' then 'failed'
        when p_recoveries >= coalesce((p_recovery ->> 'max_recoveries')::integer, 3) then 'abandoned'
        else 'requested' end
$$;
