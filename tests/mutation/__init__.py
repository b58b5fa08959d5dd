"""Mutants: the sources with one fault each, made by operators and not by hand, and whether a test finds it.

`sql/` makes those of the functions of the database; mutmut makes those of the Python that decides (`python.py`), and `judge.py`
runs the tests of each in a fork. What became of each is in `verdicts/`; `survivors.toml` says of survivors why no test finds
them. Faults that were thought of by people are in `tests/chaos/mutations`.
"""
