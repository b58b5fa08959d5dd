"""The SQL: no other room has a text that is a statement. One function, one statement, one verb, typed arguments; what comes
back are dataclasses with the columns' names, numbers and ids, never rows. Statements stand right above their functions.

What takes locks and must then read (schedule, admit, claim, finish, end, recover) is a function in the database, one
file each under migrations/functions, so that a whole step is one round trip and its concurrency story is on one screen.
"""
