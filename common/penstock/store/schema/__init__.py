"""The schema as a whole: migrations, functions, partitions, and the rights of roles.

Not here: statements on rows.
"""
