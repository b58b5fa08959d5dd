"""The benchmark: Penstock beside its peers, in one run, on servers of its own. `python -m bench --help`."""
