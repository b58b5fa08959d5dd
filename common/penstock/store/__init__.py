"""The session, and every statement of Python's, by subject: one function, one statement, one verb. Rows come out as
dataclasses. Beside them what many share: `group_commit` writes what comes together in one transaction, `result_watch` waits
for ends, `stored_results` keeps what is too large for the database.

A step that takes locks and must then read is a function of the database (schedule, admit, claim, finish, end, recover).
Each has a file in migrations/functions. So a whole step is one round trip, and its concurrency story is on one screen.

Not here: what is decided with what was read, and anything about messages but the rows of the outbox.
"""
