"""Changes that open pages and streams are told of.

Not here: the routes of streams.
"""
