"""Messages on their way: the outbox, its queues, dead letters and lost messages.

Not here: the transports.
"""
