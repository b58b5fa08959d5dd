"""The gateway for workers that speak HTTP: their sessions, the work that they take, and the ends that they report.

It keeps nothing that decides: any replica serves any call. Not here: the routes, and SQL statements.
"""
