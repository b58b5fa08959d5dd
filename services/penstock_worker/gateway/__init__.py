"""The backend of a worker that calls a gateway, and holds only a token.

Not here: the gateway, which is part of the API.
"""
