-- Return, as JSON, the values that the latest deferred or waiting attempt of an execution passes to the next attempt. Return null
-- if there are none.
create or replace function carried_over(p_execution uuid) returns text
language sql stable
as $$
    select (error -> 'carry')::text from attempt
    where execution_id = p_execution and outcome in ('deferred', 'waiting') and error ? 'carry'
    order by attempt desc limit 1
$$;
