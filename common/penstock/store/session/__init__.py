"""Sessions of the database: connections, transactions, retries, errors of PostgreSQL, and the conversions that every
statement uses.

Not here: a table.
"""
