"""The changes of which open pages and streams are notified.

Not here: the routes of streams.
"""
