-- Return the status of an execution after the loss of its worker. A requested end (`p_ends_as`) comes first. Otherwise the
-- recovery policy of the action, or of its task in a workflow, decides (`p_recovery`). The execution is requested again, or ends
-- as `abandoned` if it was lost too often. It ends as `failed` if it must not run twice.
create or replace function after_loss(p_ends_as text, p_recoveries integer, p_recovery jsonb) returns text
language sql immutable
as $$
    select case
        when p_ends_as is not null then p_ends_as
        when p_recovery ->> 'on_worker_loss' = 'fail' then 'failed'
        when p_recoveries >= coalesce((p_recovery ->> 'max_recoveries')::integer, 3) then 'abandoned'
        else 'requested' end
$$;
