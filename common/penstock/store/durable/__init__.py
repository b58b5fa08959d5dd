"""The recorded steps of durable functions.

Not here: their replay.
"""
