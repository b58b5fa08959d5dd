"""The history of a repository, commit by commit: `penstock demo` runs this on real history.

Every commit is an event. Rules pick those that touched Python, those that are large, and those that changed
documentation only. A workflow measures each Python file of a commit as an execution of its own, and joins what came of
it; a last action makes a report of everything.
"""
