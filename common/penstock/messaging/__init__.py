"""From the outbox to a handler and back: wire format, transports, publishing, consuming, broadcasts, dead letters.

Not here: what a message makes happen, which is a handler's.
"""
