"""The session and all SQL statements of the Python code, by subject: one function, one statement, one verb. A
function returns rows as dataclasses. Three modules serve several subjects: `group_commit` writes concurrent requests
in one transaction, `result_watch` waits for ends, and `stored_results` stores results that are too large for the
database.

A step that takes locks and must then read is a function of the database, with a file in migrations/functions:
schedule, admit, claim, finish, end, recover. So the step is one round trip, and its locking is on one screen.

Not here: decisions that use the rows, and anything about messages except the rows of the outbox.
"""
