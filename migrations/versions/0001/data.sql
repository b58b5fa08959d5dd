-- The only row of the table.
insert into cluster default values;

-- The legal moves: for each status, the statuses that may follow it.
insert into legal_move (subject, old, new)
select m.subject, m.old, unnest(string_to_array(m.news, ' '))
from (values
    ('execution', 'requested', 'queued scheduled running waiting cancelled failed timeout skipped'),
    ('execution', 'queued', 'requested scheduled running cancelled failed timeout skipped'),
    ('execution', 'scheduled', 'requested running cancelled failed timeout skipped'),
    ('execution', 'running', 'requested waiting canceling completed failed timeout cancelled abandoned skipped'),
    ('execution', 'waiting', 'requested running completed failed timeout cancelled skipped'),
    ('execution', 'canceling', 'cancelled completed failed timeout'),
    ('enforcement', 'created', 'executed'),
    ('enforcement', 'executed', 'created'),
    ('enforcement', 'failed', 'created'),
    ('fire', 'queued', 'created skipped'),
    ('fire', 'created', 'failed'),
    ('fire', 'skipped', 'created queued'),
    ('fire', 'failed', 'created queued'),
    ('inquiry', 'created', 'responded timeout cancelled'),
    ('inquiry', 'responded', 'created'),
    ('process', 'active', 'cordoned draining dead'),
    ('process', 'cordoned', 'active draining dead'),
    ('process', 'draining', 'dead'),
    ('process', 'dead', 'active'),
    ('workflow', 'running', 'stopping exiting ended'),
    ('workflow', 'stopping', 'exiting ended'),
    ('workflow', 'exiting', 'ended')
) m (subject, old, news);

-- The pseudo-actions of waiting tasks. No worker runs them, so their namespaces have no queue.
insert into definition (kind, ref, digest, body) values ('wait', 'wait_for_event', '', '{}'), ('wait', 'inquiry', '', '{}');

-- The chain of the audit before its first row.
insert into audit_chain (position, seal, dropped_position, dropped_seal)
values (0, sha256('penstock audit'), 0, sha256('penstock audit'));
