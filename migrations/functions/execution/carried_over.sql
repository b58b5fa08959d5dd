-- What the attempts of an execution that put themselves off have carried over to the next one, as JSON.
create or replace function carried_over(p_execution uuid) returns text
language sql stable
as $$
    select (error -> 'carry')::text from attempt
    where execution_id = p_execution and outcome = 'deferred' and error ? 'carry'
    order by attempt desc limit 1
$$;
