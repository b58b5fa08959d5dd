-- Return the open executions inside the durable functions among `p_ids` with a requested end. `root` is the execution among
-- `p_ids`, and `depth` counts from 1. A function inside counts as the ones among `p_ids` do: its children are returned if its end
-- was requested.
create or replace function inside_functions(p_ids uuid[]) returns table (id uuid, root uuid, depth integer)
language sql stable
as $$
    with recursive inside as (
        select e.id, e.id as root, 0 as depth from execution e join definition d on d.id = e.definition_id
        where e.id = any (p_ids) and e.ends_as is not null and d.body ? 'durable'
        union all
        select c.id, i.root, i.depth + 1 from inside i
        join execution e on e.id = i.id join definition d on d.id = e.definition_id join execution c on c.parent = i.id
        where e.ends_as is not null and d.body ? 'durable' and c.finished_at is null
    )
    select i.id, i.root, i.depth from inside i where i.depth > 0
$$;
