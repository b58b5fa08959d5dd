"""The calls of actions that are HTTP requests, from the templates of the request to the outcome of the attempt.

Not here: connections, and the addresses that they may reach.
"""
