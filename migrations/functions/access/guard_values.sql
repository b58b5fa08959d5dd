-- Create the triggers that refuse plain values of encrypted tenants (refuse_clear), one on each table with values of users. The
-- owner of the tables calls this when a tenant is first encrypted. An installation without encrypted tenants has none of these
-- triggers, and pays nothing for them.
create or replace function guard_values() returns void
language plpgsql
as $$
declare
    r record;
begin
    for r in select * from (values
        ('payload', '''execution'', ''params'''),
        ('result', '''execution'', ''result'', ''error'''),
        ('attempt', '''execution'', ''error'''),
        ('log_line', '''execution'', ''line'''),
        ('inquiry', '''execution'', ''prompt'', ''default_answer'', ''response'''),
        ('step', '''execution'', ''result'', ''error'''),
        ('workflow_task', '''execution'', ''record'''),
        ('workflow_variable', '''execution'', ''value'''),
        ('workflow_item', '''execution'', ''value'''),
        ('workflow_kept', '''execution'', ''result'', ''error'''),
        ('workflow_command', '''execution'', ''value'''),
        ('event', '''tenant'', ''payload'''),
        ('enforcement', '''namespace'', ''params'', ''error'''),
        ('waiting_fire', '''namespace'', ''params''')) as t (name, arguments)
    loop
        execute format('create or replace ' || 'trigger refuse_clear after insert or update on %I for each row '
            'execute function refuse_clear(%s)', r.name, r.arguments);
    end loop;
end $$;
