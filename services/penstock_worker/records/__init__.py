"""The data structures that all parts of a worker share: attempts, slots, versions.

Not here: SQL statements.
"""
