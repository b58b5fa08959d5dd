-- Start a new execution `p_new` with the version, parameters and options of the ended execution `p_old`, which may be archived.
-- `p_params` replaces the parameters, if it is not null. The re-run of a task is not a task, but it gets the labels of the
-- workflow that are not labels of its action. Labels with the name of a searchable parameter are left out, since they may
-- contradict the parameters. `p_labels` are added, and replace labels with the same key. `known` is false if the old execution
-- has not ended, or is no longer kept.
create or replace function rerun_ended_execution(
    p_new uuid, p_old uuid, p_origin text, p_task text, p_value text, p_by text, p_reason text,
    p_params text, p_labels text, out messages message[], out known boolean
)
language plpgsql
as $$
declare
    v_old record;
    v_labels jsonb;
    v_inherited jsonb := '{}';
    v_options jsonb;
begin
    perform check_ids(array[p_new]);
    messages := '{}';
    select x.* into v_old from (
        select e.namespace_id, e.definition_id, e.parent, e.priority, p.params::text as params, p.options::text as options
        from execution e join payload p on p.execution_id = e.id
        where e.id = p_old and e.finished_at is not null
        union all
        select n.id, a.definition_id, a.parent, a.priority, a.params::text, a.options::text
        from archive a join namespace n on n.name = a.namespace and n.action = a.action
        where a.id = p_old
    ) x limit 1;
    known := found;
    if not known then
        return;
    end if;
    if v_old.parent is not null then
        select coalesce(jsonb_object_agg(l.key, l.value), '{}') into v_inherited from (
            select key, value from label where execution_id = v_old.parent
            union
            select key, value from archived_label where id = v_old.parent
        ) l;
    end if;
    select (v_inherited - array(select jsonb_object_keys(f.body -> 'run_labels')) || coalesce(v_old.options::jsonb -> 'labels', '{}'))
            - array(select jsonb_array_elements_text(f.body -> 'searchable')) || coalesce(p_labels::jsonb, '{}')
        into v_labels from definition f where f.id = v_old.definition_id;
    v_options := coalesce(v_old.options::jsonb, '{}') - 'labels';
    if v_labels <> '{}' then
        v_options := v_options || jsonb_build_object('labels', v_labels);
    end if;
    perform share_budgets(p_new, p_old);
    insert into chain_step (id, cause, name, depth, chains, raised)
    select p_new, cause, name, depth, chains, raised from chain_step where id = p_old on conflict do nothing;
    messages := request_executions(array[p_new], array[v_old.namespace_id], array[v_old.definition_id],
        array[coalesce(p_params, v_old.params)], array[nullif(v_options, '{}')::text], array[p_origin], array[v_old.priority], null, null, null, null, false);
    if messages <> '{}' then -- empty if an earlier try was committed and its answer was lost
        insert into workflow_command (execution_id, kind, task, value, by, reason, obeyed_at)
        values (p_old, 'rerun', p_task, p_value::jsonb, p_by, p_reason, clock_timestamp());
    end if;
end $$;
