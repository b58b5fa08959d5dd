"""The way from the outbox to a handler and back: wire format, transports, publishing, consuming, broadcasts, dead
letters.

Not here: the effects of messages, which are the handlers'.
"""
