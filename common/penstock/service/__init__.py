"""What every process does around its work: connect, beat, tell its health, stop when told; and the PostgreSQL that it may
bring along.

Not here: the work itself, which is the services'.
"""
