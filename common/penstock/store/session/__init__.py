"""Sessions of the database: connections, transactions, retries, errors of PostgreSQL, and the records that every statement
uses.

Not here: a table.
"""
