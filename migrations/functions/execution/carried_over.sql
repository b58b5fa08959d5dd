-- What the attempts of an execution that put themselves off, or were answered, have carried over to the next one, as JSON.
create or replace function carried_over(p_execution uuid) returns text
language sql stable
as $$
    select (error -> 'carry')::text from attempt
    where execution_id = p_execution and outcome in ('deferred', 'waiting') and error ? 'carry'
    order by attempt desc limit 1
$$;
