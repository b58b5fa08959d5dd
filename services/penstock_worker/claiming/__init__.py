"""The way of work from a route into the free slots.

Not here: its run.
"""
