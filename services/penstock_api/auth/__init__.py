"""Callers and their rights: tokens, sessions, identity providers.

Not here: the page of a sign-in.
"""
