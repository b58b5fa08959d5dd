"""The rules of each request: problems, paths, addresses, connections, the description.

Not here: the caller's rights.
"""
