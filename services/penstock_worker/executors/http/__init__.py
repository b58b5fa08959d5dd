"""The task executor that calls a server.

Not here: the API.
"""
