"""Webhooks: signed calls of other programs that become events.

Not here: calls that Penstock makes.
"""
