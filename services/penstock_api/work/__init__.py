"""The gateway for workers that speak HTTP: their sessions, the work that they take, and the ends that they report.

A gateway stores nothing that decides, so each replica can serve each call. Not here: the routes, and SQL statements.
"""
