-- Raise PN001 for moves that are not in `legal_move`, of all subjects except executions (see execution_moved). The trigger fires
-- for each row, since these rows move one or a few at a time. Its `when` excludes updates that move nothing. The first argument
-- is the subject. The others are the columns that identify a row in the error.
create or replace function row_moved() returns trigger
language plpgsql
as $$
declare
    v_old text;
    v_new text;
begin
    case tg_argv[0]
        when 'process' then v_old := old.state; v_new := new.state;
        when 'workflow' then v_old := old.head ->> 'phase'; v_new := new.head ->> 'phase';
        else v_old := old.status; v_new := new.status;
    end case;
    if not exists (select from legal_move l where l.subject = tg_argv[0] and l.old = v_old and l.new = v_new) then
        raise exception 'illegal move of % %: % -> %', tg_argv[0],
            (select string_agg(to_jsonb(old) ->> n.name, ' at ' order by n.ord)
             from unnest(tg_argv[1:]) with ordinality n (name, ord)), v_old, coalesce(v_new, 'nothing')
            using errcode = 'PN001';
    end if;
    return new;
end $$;

create or replace trigger enforcement_moved before update of status on enforcement
for each row when (old.status <> new.status) execute function row_moved('enforcement', 'execution_id');

create or replace trigger fire_moved before update of status on fire
for each row when (old.status <> new.status) execute function row_moved('fire', 'schedule', 'due_at');

create or replace trigger inquiry_moved before update of status on inquiry
for each row when (old.status <> new.status) execute function row_moved('inquiry', 'execution_id');

create or replace trigger process_moved before update of state on process
for each row when (old.state <> new.state) execute function row_moved('process', 'id');

-- The first state that a workflow gets is not a move.
create or replace trigger workflow_moved before update of head on workflow
for each row when (old.head ->> 'phase' is distinct from new.head ->> 'phase' and old.head is not null)
execute function row_moved('workflow', 'execution_id');
