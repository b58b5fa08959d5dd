-- Return the outermost workflow around `p_workflow`, or `p_workflow` itself if it has no parent. Return null for null.
create or replace function root_of(p_workflow uuid) returns uuid
language plpgsql stable
as $$
declare
    v_parent uuid := p_workflow;
    v_root uuid;
begin
    while v_parent is not null loop
        v_root := v_parent;
        select parent into v_parent from execution where id = v_root;
    end loop;
    return v_root;
end $$;
