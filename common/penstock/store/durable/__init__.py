"""The recorded steps of durable functions, and their open runs by code.

Not here: their replay.
"""
