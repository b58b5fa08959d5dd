-- Refuse a row with a plain value of an encrypted tenant (PN005), or with a sealed value of another tenant (PN006). guard_values
-- creates the triggers that call this function, once a tenant is encrypted. The first argument of the trigger says where the
-- row's tenant comes from: its execution, its namespace, or its own column `tenant`. The other arguments are the columns with
-- values.
-- planner: lookups_planned_once
create or replace function refuse_clear() returns trigger
language plpgsql
as $$
declare
    v_row constant jsonb := to_jsonb(new);
    v_tenant text;
    v_encrypted boolean;
    v_column text;
    v_value jsonb;
    v_clear boolean;
begin
    case tg_argv[0]
        when 'execution' then
            select split_part(n.name, '::', 1) into v_tenant
            from execution e join namespace n on n.id = e.namespace_id where e.id = (v_row ->> 'execution_id')::uuid;
            if not found then  -- the last log lines may come after the execution was archived
                select split_part(a.namespace, '::', 1) into v_tenant from archive a where a.id = (v_row ->> 'execution_id')::uuid;
            end if;
        when 'namespace' then
            select split_part(n.name, '::', 1) into v_tenant from namespace n where n.id = (v_row ->> 'namespace_id')::integer;
        else
            v_tenant := v_row ->> 'tenant';
    end case;
    if v_tenant is null then
        return null;
    end if;
    v_encrypted := exists (select from tenant_key k where k.tenant = v_tenant and k.seals);
    foreach v_column in array tg_argv[1:] loop
        v_value := v_row -> v_column;
        continue when v_value is null or v_value in ('null', '{}');
        if position('"$sealed' in v_value::text) > 0 and exists (
            select from regexp_matches(v_value::text, '"\$sealed(?:": "|:)\d{1,9}\.([a-z0-9_-]+)\.', 'g') m where m[1] <> v_tenant)
        then
            raise exception '% of % has a value that was sealed for another tenant than %', v_column, tg_table_name, v_tenant
                using errcode = 'PN006';
        end if;
        -- A re-run command names only executions and tasks, which are never encrypted.
        continue when not v_encrypted or tg_table_name = 'workflow_command' and v_row ->> 'kind' = 'rerun';
        v_clear := case
            when jsonb_typeof(v_value) = 'string' then not starts_with(v_value #>> '{}', '$sealed:')
            when jsonb_typeof(v_value) <> 'object' then true
            when v_value ? '$sealed' then false
            -- In a system event, only the title and the prompt come from users. The database writes all other values, and cannot
            -- seal.
            when v_column = 'payload' and starts_with(v_row ->> 'trigger', 'penstock.') then
                coalesce(not starts_with(v_value ->> 'title', '$sealed:') or not starts_with(v_value ->> 'prompt', '$sealed:'), false)
            -- An error that the database itself writes has no traceback. Carried values and questions are sealed inside the
            -- error.
            when v_column = 'error' then v_value ? 'traceback' or v_value ? 'carry' and not (v_value -> 'carry') ? '$sealed'
                and not starts_with(coalesce(v_value #>> '{carry,prompt}', ''), '$sealed:')
            -- In a task's record, only the result and the error are sealed, since SQL reads the status and the counts.
            when v_column = 'record' then v_value ? 'result' and not coalesce((v_value -> 'result') ? '$sealed', false)
                or v_value ? 'error' and not coalesce((v_value -> 'error') ? '$sealed', false)
            else true
        end;
        if v_clear then
            raise exception 'the values of tenant % are encrypted: % of % would be in clear', v_tenant, v_column, tg_table_name
                using errcode = 'PN005', detail = v_tenant;
        end if;
    end loop;
    return null;
end $$;
