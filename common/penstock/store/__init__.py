"""The SQL. One function, one statement, one verb; hot statements stand right above their function.

What takes locks and must then read (schedule, admit, claim, finish, end, recover) is a function in the database, one
file each under migrations/functions, so that a whole step is one round trip and its concurrency story is on one screen.
"""
