-- Return the labels of an execution from their four sources: the parent, the definition (`run_labels`), the searchable parameters,
-- and the options. If two labels have the same key, the later source in this order counts. A parameter becomes a label if it is
-- a text of 1 to 200 characters, a number or a boolean. An encrypted parameter does not: beside `$sealed` there are only digests of
-- values, by which limits group.
-- PostgreSQL inlines this function into the caller's query.
create or replace function merge_labels(p_parent uuid, p_body jsonb, p_params jsonb, p_options jsonb)
returns table (key text, value text)
language sql stable
as $$
    select distinct on (x.key) x.key, x.value
    from (
        select l.key, l.value, 0 as place from label l where l.execution_id = p_parent
        union all
        select r.key, r.value, 1 from jsonb_each_text(p_body -> 'run_labels') r
        union all
        select s.name, p_params ->> s.name, 2 from jsonb_array_elements_text(p_body -> 'searchable') s (name)
        where not p_params ? '$sealed' and jsonb_typeof(p_params -> s.name) in ('string', 'number', 'boolean')
            and length(p_params ->> s.name) between 1 and 200
        union all
        select o.key, o.value, 3 from jsonb_each_text(p_options -> 'labels') o
    ) x
    order by x.key, x.place desc
$$;
