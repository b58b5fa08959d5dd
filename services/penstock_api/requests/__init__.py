"""The handling of all requests: problem documents, paths, addresses, connections, the description.

Not here: the caller's rights.
"""
