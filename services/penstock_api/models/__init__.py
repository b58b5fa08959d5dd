"""The models of requests, and of answers that are not records, a file for each subject.

Not here: an answer with the fields of a dataclass of `client`, `operate` or `store`. Its route returns the dataclass, and the
texts of fields stand there.
"""
