"""The frame of every process: it connects, beats, reports its health, and stops when asked; with the PostgreSQL that
it may bring along.

Not here: the work itself, which is the services'.
"""
