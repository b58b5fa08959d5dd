"""The backend of a worker that has a session with the database.

Not here: claims, reports and durable functions, which have rooms of their own.
"""
