"""The rows of processes, with their heartbeats.

Not here: the loop that sends heartbeats.
"""
