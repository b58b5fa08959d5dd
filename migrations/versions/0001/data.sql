-- The one row that there is.
insert into cluster default values;

-- The legal moves: from each status to which others.
insert into legal_move (old, new)
select m.old, unnest(string_to_array(m.news, ' '))
from (values
    ('requested', 'queued scheduled running waiting cancelled failed timeout skipped'),
    ('queued', 'requested scheduled running cancelled failed timeout skipped'),
    ('scheduled', 'requested running cancelled failed timeout skipped'),
    ('running', 'requested waiting canceling completed failed timeout cancelled abandoned skipped'),
    ('waiting', 'requested running completed failed timeout cancelled skipped'),
    ('canceling', 'cancelled completed failed timeout')
) m (old, news);

-- What waiting tasks run: nothing that a worker has. Their namespaces have no queue.
insert into definition (kind, ref, digest, body) values ('wait', 'wait_for_event', '', '{}'), ('wait', 'inquiry', '', '{}');
