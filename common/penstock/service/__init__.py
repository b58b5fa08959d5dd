"""The frame of every process: it connects, sends heartbeats, reports its health, and stops when asked. Also the
embedded PostgreSQL that it may start.

Not here: the work itself, which the services do.
"""
