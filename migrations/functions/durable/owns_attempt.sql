-- Return true if the worker owns this attempt of the execution.
create or replace function owns_attempt(p_worker uuid, p_execution uuid, p_attempt integer) returns boolean
language sql stable
as $$
    select exists (select from execution where id = p_execution and attempt = p_attempt and claim = p_worker
        and status in ('running', 'canceling'))
$$;
