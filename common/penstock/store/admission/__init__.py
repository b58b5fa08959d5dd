"""Limits, the lines at their keys, and waiting work.

Not here: the decision about admission, which functions of the database make.
"""
