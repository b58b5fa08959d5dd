-- Return the sealed secrets among `p_names` that the execution's parameters or the options of its action refer to. Return none
-- unless the process `p_process` holds the claim of the execution. A worker's role can read the table `secret` in no other way.
create or replace function secrets_of_attempt(p_execution uuid, p_process uuid, p_names text[])
returns table (tenant text, name text, sealed bytea, data_key bytea, master_key text)
language sql stable security definer
as $$
    select s.tenant, s.name, s.sealed, s.data_key, s.master_key
    from execution e
    join namespace n on n.id = e.namespace_id
    join payload p on p.execution_id = e.id
    join definition f on f.id = e.definition_id
    join secret s on s.tenant = split_part(n.name, '::', 1) and s.name = any (p_names)
    where e.id = p_execution and e.claim = p_process
        and (exists (
            select from jsonb_path_query(p.params, '$."$secrets"[*][1][*].secret') as named
            where named #>> '{}' = s.name)
            or exists (select from jsonb_each_text(f.body #> '{options,secrets}') o where o.value = s.name))
$$;
